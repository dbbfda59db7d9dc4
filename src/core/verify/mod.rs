//! Invariants of the state and its legal transitions, checked from raw facts.

pub mod invariants;
pub mod transition;
