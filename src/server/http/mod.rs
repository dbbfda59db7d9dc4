//! What operators see.

mod bounds;
pub mod harmless;
pub mod host;
pub mod http;
pub mod logging;
mod metrics;
mod page;
mod watch;
