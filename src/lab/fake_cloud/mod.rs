//! The platform's metadata endpoint on loopback, for tests, demos and development.
//!
//! `simulator::cloud` decides what happens to which VM; this room says it over HTTP as the real service would, and can
//! be told to say it badly. It listens on loopback and nowhere else, and it never asks anybody anything.

mod address;
mod answer;
mod approve;
mod clock;
mod command;
mod control;
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
