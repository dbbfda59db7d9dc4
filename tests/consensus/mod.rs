//! Replicas in one process, with real sockets and a real disk: agreed entries survive every fault of a replica.
mod addresses;
mod asking;
mod contact;
mod crash;
mod directory;
mod failures;
mod formation;
mod handover;
mod leadership;
mod learners;
mod membership;
mod proposals;
mod recovery;
mod rejoining;
mod support;
mod wire;
