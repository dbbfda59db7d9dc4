//! The standard health service and server reflection.

use tonic::service::Routes;

use allclear_wire::pb;

/// The limit for requests, which contain a name only.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Adds health (serving as long as the process runs) and reflection to the routes.
pub fn with_health_and_reflection(routes: Routes) -> Routes {
    let (_, health) = tonic_health::server::health_reporter();
    let routes = routes.add_service(health.max_decoding_message_size(MAX_MESSAGE_BYTES));
    let descriptors =
        tonic_reflection::server::Builder::configure().register_encoded_file_descriptor_set(pb::DESCRIPTORS);
    match descriptors.build_v1() {
        Ok(reflection) => routes.add_service(reflection.max_decoding_message_size(MAX_MESSAGE_BYTES)),
        Err(error) => {
            tracing::warn!(%error, "server reflection disabled");
            routes
        }
    }
}
