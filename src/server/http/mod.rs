//! What operators see.

mod bounds;
pub mod harmless;
pub mod host;
pub mod logging;
mod metrics;
mod page;
pub mod server;
mod watch;
