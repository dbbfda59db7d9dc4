//! Claim: input from outside, and commands in any order, are read or refused with a reason; nothing panics, nothing
//! grows without bound, and no property of `SPEC.md` 18 breaks.
//!
//! A mutator of our own instead of a fuzzing crate: corpora of real input existed already, most input is a tree
//! (JSON, TOML, protobuf) and best changed as a tree, and commands are only interesting when most of them fit
//! the state. So a crate would only contribute a source of bytes and shrinking, which are short (`dice.rs`,
//! `shrink.rs`).
//!
//! Every run is identical. `ALLCLEAR_HOSTILE=30` runs thirty times as many rounds, and another value of
//! `ALLCLEAR_SEED` changes the seed. Failing cases are in `found/`, shrunk, under a name, and run again every time.

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
