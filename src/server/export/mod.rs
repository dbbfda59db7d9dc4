//! What is told to other systems, over HTTP and HTTPS. Nothing waits for it, and nothing that they answer is believed
//! beyond its status.

pub mod headers;
pub mod notices;
mod post;
mod retry;
pub mod traces;
