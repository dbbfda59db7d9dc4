//! Exports to other systems over HTTP and HTTPS. Nothing waits for an export, and of an answer only the status counts.

pub mod headers;
pub mod notices;
mod post;
mod retry;
pub mod traces;
