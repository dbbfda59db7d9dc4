//! The fake cloud over real sockets: a client for the real service works against the fake cloud, every api-version and
//! every fault behaves as documented, and no input does harm.

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
