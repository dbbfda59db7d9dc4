//! What operators see.

pub mod http;
pub mod logging;
mod page;
mod watch;
