//! The standard health service and server reflection.

use tonic::service::Routes;
use tonic_health::pb as health;
use tonic_reflection::pb as reflection;
use tonic_reflection::server::Builder;

use allclear_wire::pb;

/// The limit for requests, which contain a name only.
const MAX_MESSAGE_BYTES: usize = 4 << 10;

/// Adds health (serving as long as the process runs) and reflection to the routes. Reflection lists `services`, which the
/// routes serve, and the added services; many clients know only its older version.
pub fn with_health_and_reflection(routes: Routes, services: &[&str]) -> Routes {
    let (_, reporter) = tonic_health::server::health_reporter();
    let mut routes = routes.add_service(reporter.max_decoding_message_size(MAX_MESSAGE_BYTES));
    let added = [
        health::health_server::SERVICE_NAME,
        reflection::v1::server_reflection_server::SERVICE_NAME,
        reflection::v1alpha::server_reflection_server::SERVICE_NAME,
    ];
    let builder = || {
        let described = Builder::configure()
            .register_encoded_file_descriptor_set(pb::DESCRIPTORS)
            .register_encoded_file_descriptor_set(health::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(reflection::v1::FILE_DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(reflection::v1alpha::FILE_DESCRIPTOR_SET);
        services.iter().chain(&added).fold(described, |builder, name| builder.with_service_name(*name))
    };
    match builder().build_v1() {
        Ok(reflection) => routes = routes.add_service(reflection.max_decoding_message_size(MAX_MESSAGE_BYTES)),
        Err(error) => tracing::warn!(%error, "server reflection disabled"),
    }
    match builder().build_v1alpha() {
        Ok(reflection) => routes = routes.add_service(reflection.max_decoding_message_size(MAX_MESSAGE_BYTES)),
        Err(error) => tracing::warn!(%error, "older server reflection disabled"),
    }
    routes
}
