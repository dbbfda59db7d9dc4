//! The client of the metadata service: polls the document, and posts approvals that were decided elsewhere.
//!
//! Refuses to guess. Any answer except a validated document is [`NoInformation`] with its reason, never "no events",
//! and any answer to an approval except a definite reply is [`Approval::Unknown`], never "done". The client decides
//! nothing, keeps no document, has no clock of its own and draws no random numbers.

mod approval;
mod date;
mod dated;
mod document;
mod endpoint;
mod event;
mod exchange;
pub mod health;
mod instance;
mod json;
mod no_information;
pub mod poll_schedule;
mod service;
mod token;
mod version;
mod version_fallback;

pub use approval::Approval;
pub use document::{MAX_BODY, MAX_EVENTS, read as read_document, read_written};
pub use endpoint::{BadEndpoint, Endpoint, Polled, Timeouts, is_address};
pub use event::MAX_RESOURCES;
pub use health::ImdsHealthTracker;
pub use instance::Instance;
pub use no_information::NoInformation;
pub use service::MetadataService;
pub use token::IdentityToken;
pub use version::ApiVersion;
