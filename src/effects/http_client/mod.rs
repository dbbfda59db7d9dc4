//! The HTTP client for every request that leaves the process: metadata service, hooks, roles, webhooks, traces.
//!
//! Every client comes from one builder without proxies, redirects, retries and decompression: a request goes to the
//! configured server, once.

mod address;
mod client;
mod exchange;
#[cfg(test)]
mod tests;
mod tls;

pub use address::{is_confidential, parse, parse_external};
pub use client::{HttpClient, Login, Options, plain};
pub use exchange::{BodyLimit, ExchangeError, Reply, exchange, read_body, reason};
pub use reqwest::{Method, RequestBuilder, StatusCode, Url, header};
pub use tls::ClientCertificate;
