//! Which hooks are required, when each may start, when an event may be claimed, and when a member is restored.

pub mod affected;
pub mod attempts;
pub mod claims;
pub mod clearance;
pub mod departed;
pub mod failed;
pub mod groups;
pub mod last_call;
pub mod left_out;
pub mod needs;
pub mod next;
pub mod order;
pub mod peers;
pub mod progress;
pub mod restoring;
pub mod slots;
pub mod step;
