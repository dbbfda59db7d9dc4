//! The platform's metadata endpoint on loopback, for tests, demos and development.
//!
//! `allclear_cloud` decides the events of each VM; this module serves the events over HTTP like the real service,
//! or with configured faults. The module listens on loopback only, and never sends a request.

mod address;
mod answer;
mod approve;
mod clock;
mod command;
mod control;
mod control_plane;
mod dates;
mod document;
mod exchange;
mod fault;
mod instance;
mod lies;
mod listener;
mod metadata;
mod order;
mod record;
mod request_log;
mod scenario;
mod serve;
mod server_state;
mod span;
mod tenant;
mod version;

pub use command::{FakeCloud, scenarios};
pub use record::Post;
pub use scenario::{CloudScenario, SCENARIOS, ScenarioError};
pub use serve::{Options, Running, ServeError, serve};
