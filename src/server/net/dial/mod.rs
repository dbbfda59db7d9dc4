//! How another replica is reached: its name is resolved whenever it is dialled, within bounds, and every address that
//! it has is tried. Whether it is the right one that answers is not decided here.

mod coalesced_writes;
mod plain;
mod stream;
mod target;

pub use coalesced_writes::CoalescedWrites;
pub use plain::{dial, refuse};
pub use stream::connect;
pub use target::DialTarget;
