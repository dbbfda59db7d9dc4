//! One replica of allclear: all effects around the core.

extern crate alloc;

pub mod app;
pub mod config;
pub mod consensus;
pub mod exit;
pub mod export;
pub mod files;
pub mod grpc;
pub mod hooks;
pub mod http;
pub mod http_client;
pub mod imds;
pub mod net;
pub mod replica;
pub mod secrets;
pub mod signals;
