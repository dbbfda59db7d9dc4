//! Secrets: read from files that nobody else reads, and cut out of what those say whom they were given to.

mod cut;
mod file;

pub use cut::{Cutter, SHORTEST, Secrets};
pub use file::{read, read_for};
