//! gRPC doors, thin: decode, one call, encode; and the client's side of the same doors.

pub mod client;
mod contact;
mod operator;
mod socket;

pub use contact::{beat, contact_service};
pub use operator::operator_routes;
pub use socket::{SocketError, bind, serve};
pub use tonic::service::Routes;
