//! Mutual TLS between replicas: certificates with their names, reading, renewal, issuing, and connections. Both sides
//! present a certificate, in TLS 1.3. This module never uses plain text.

mod authority;
mod caller;
mod chain;
mod connection;
mod credentials;
mod dial;
mod files;
mod handshake_error;
mod handshake_errors;
mod incoming;
pub mod issued;
mod names;
mod verifier;

pub use authority::{Authority, Made, MakeError};
pub use caller::Caller;
pub use connection::TlsConnection;
pub use credentials::{Credentials, Options};
pub use dial::dial;
pub use files::{Files, LoadedFiles, Unfit};
pub use handshake_error::{HandshakeError, cause};
pub use incoming::incoming;
pub use names::{CertificateNames, CertificatePolicy, NamedBy};
