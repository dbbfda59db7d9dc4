//! What a replica does on its machine and asks other systems: hooks, the metadata service, and requests over HTTP.

extern crate alloc;

pub mod control_plane;
pub mod hooks;
pub mod http_client;
pub mod imds;
pub mod secrets;
