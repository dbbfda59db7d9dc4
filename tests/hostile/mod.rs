//! Claim: whatever comes from outside, and whatever order commands come in, is read or refused with a reason; nothing
//! panics, nothing grows without bound, and no property of `behaviour.md` 13 breaks.
//!
//! A mutator of our own rather than a fuzzing crate: corpora of real input were there already, most input is a tree
//! (JSON, TOML, protobuf) that is best changed as a tree, and commands are only interesting when most of them fit
//! the state they meet. So what a crate would bring is a source of bytes and shrinking, which are short (`dice.rs`,
//! `shrink.rs`).
//!
//! A run is the same every time. `ALLCLEAR_HOSTILE=30` tries thirty times as much, from another seed each time that
//! `ALLCLEAR_SEED` says so. What was found stands in `found/`, shrunk, under a name, and is tried again in every run.

mod answers;
pub(crate) mod calls;
mod commands;
mod configuration;
mod dice;
mod documents;
mod memory;
mod message;
mod messages;
mod mutate;
mod sequence;
mod shrink;
mod stored;
