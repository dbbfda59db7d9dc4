//! Connections to other replicas and from clients: addresses, certificates, limits.

pub mod dial;
pub mod limits;
pub mod tls;
