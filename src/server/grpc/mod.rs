//! gRPC doors, thin: decode, one call, encode; and the client's side of the same doors.

mod agreed_time;
mod alone;
mod asking;
pub mod client;
mod contact;
mod doors;
mod drill;
mod expected;
mod operator;
mod refusal;
mod socket;
mod users;
mod visit;
mod wishes;
mod workload;

pub use contact::{beat, contact_service};
pub use doors::serve;
pub use expected::with_health_and_reflection;
pub use operator::operator_routes;
pub use socket::bind;
pub use tonic::service::Routes;
pub use users::{Guard, Users, trusted_users};
pub use visit::{Visit, Visitor, visit};
pub use workload::workload_routes;
