//! gRPC services and clients. Each method decodes, makes one call, and encodes.

mod alone;
mod any_authority;
pub mod client;
mod contact;
mod drill;
mod hook_selection;
mod imds_report;
mod leader_query;
mod leader_time;
mod member_removal;
mod names;
mod operator;
mod operator_actions;
mod probe;
mod reflection;
mod refusal;
mod serve;
mod socket;
mod uid_policy;
mod workload;

pub use contact::{contact_service, report_status};
pub use operator::operator_routes;
pub use probe::{ProbeResult, Prober, visit};
pub use reflection::with_health_and_reflection;
pub use serve::serve;
pub use socket::bind;
pub use tonic::service::Routes;
pub use uid_policy::{UidPolicy, Users, trusted_users};
pub use workload::workload_routes;
