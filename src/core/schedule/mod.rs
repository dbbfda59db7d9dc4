//! Which hooks are required, when each may start, when an event may be claimed, and when a member is restored.

pub mod affected_members;
pub mod attempts;
pub mod checks;
pub mod claims;
pub mod clearance;
pub mod constraints;
pub mod deletion;
pub mod drill;
pub mod failure;
pub mod groups;
pub mod last_call;
pub mod missing;
pub mod next_steps;
pub mod peers;
pub mod required;
pub mod restore;
mod retry_delay;
pub mod skip_reason;
pub mod slot_queue;
pub mod slot_taking;
pub mod slots;
pub mod step;
pub mod step_state;
