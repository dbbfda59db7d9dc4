//! What could happen: worlds on virtual time, made from a seed. Reads no clock, opens no socket, starts no thread.

pub mod cloud;
