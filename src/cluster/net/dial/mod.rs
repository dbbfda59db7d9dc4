//! Connects to another replica. The replica's name is resolved at each attempt, within bounds, and every address is
//! tried. The caller checks the identity of the answering replica.

mod coalesced_writes;
mod plain;
mod stream;
mod target;

pub use coalesced_writes::CoalescedWrites;
pub use plain::{dial, refuse};
pub use stream::connect;
pub use target::DialTarget;
