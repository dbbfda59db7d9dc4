//! gRPC doors, thin: decode, one call, encode; and the client's side of the same doors.

mod asking;
pub mod client;
mod contact;
mod drill;
mod expected;
mod operator;
mod refusal;
mod socket;
mod visit;
mod wishes;
mod workload;

pub use contact::{beat, contact_service};
pub use expected::with_health_and_reflection;
pub use operator::operator_routes;
pub use socket::{SocketError, bind, serve};
pub use tonic::service::Routes;
pub use visit::{Visit, Visitor, visit};
pub use workload::{Users, serve_workloads, workload_routes};
