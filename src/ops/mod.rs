//! What operators see.

pub mod logging;
