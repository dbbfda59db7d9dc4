//! Generated messages, and conversions between them and the core's types.

pub mod checksum;
#[cfg(feature = "replica")]
pub mod log;
pub mod pb;

/// The description of what a replica answers over HTTP, in OpenAPI.
#[cfg(feature = "replica")]
pub const OPENAPI: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// Of a message in bytes, as it is sent.
pub fn size(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
