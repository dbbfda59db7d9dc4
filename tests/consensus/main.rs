//! Replicas in one process, with real sockets and a real disk: what they agree on survives what happens to them.

mod directory;
mod failures;
mod formation;
mod leadership;
mod proposals;
mod recovery;
mod support;
