//! Connects to another replica. Its name is resolved at each attempt, within bounds, and every address is tried. The
//! caller checks whether the right replica answers.

mod coalesced_writes;
mod plain;
mod stream;
mod target;

pub use coalesced_writes::CoalescedWrites;
pub use plain::{dial, refuse};
pub use stream::connect;
pub use target::DialTarget;
