//! Bytes and what they mean: the generated code, and conversions between it and the machine's types.

pub mod log;
pub mod pb;
pub mod seal;

/// Of a message in bytes, as it is sent.
pub fn size(message: &impl prost::Message) -> usize {
    message.encoded_len()
}
