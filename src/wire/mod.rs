//! Bytes and what they mean: the generated code, and conversions between it and the machine's types.

pub mod log;
pub mod pb;
pub mod seal;
