//! The fake cloud over real sockets: a client written for the real service works against it, every api-version and
//! every fault is what it says, and nothing that is sent to it does harm.

// The suite's own functions are tests too, which clippy does not know.
mod approvals;
mod bounds;
mod client;
mod control;
mod faults;
mod loopback;
mod lost;
mod scenarios;
mod stage;
mod versions;
