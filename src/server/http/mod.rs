//! The HTTP interface for operators: status API, page, metrics; and logging.

pub mod host;
mod limits;
pub mod logging;
mod metrics;
mod page;
mod problem;
pub mod server;
mod watch;
pub mod yaml;
