//! Secrets: read from files that no other user can read, and removed from messages.

mod cut;
mod file;

pub use cut::{Cutter, SHORTEST, Secrets};
pub use file::{read, read_for};
