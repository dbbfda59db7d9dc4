//! The fake cloud over real sockets: a client written for the real service works against it, every api-version and
//! every fault is what it says, and nothing that is sent to it does harm.

mod client;
mod stage;
