//! Who may speak as which replica: what a certificate must name, how certificates are read, renewed and made, and the
//! connections that are opened with them. Both sides show one, in TLS 1.3, always; nothing here speaks plain text.

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
