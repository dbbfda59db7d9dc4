//! What is told to other systems, over HTTP and HTTPS. Nothing waits for it, and nothing that they answer is believed
//! beyond its status.

pub mod client;
mod files;
pub mod headers;
pub mod notices;
pub mod traces;
