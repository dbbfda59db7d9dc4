//! Generated messages, and conversions between messages and the core's types.

pub mod checksum;
#[cfg(feature = "replica")]
pub mod log;
pub mod pb;

/// The OpenAPI description of a replica's HTTP API.
#[cfg(feature = "replica")]
pub const OPENAPI: &str = include_str!("generated/openapi.json");

/// Size of a message in bytes, as sent.
pub fn size(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
