//! Times as texts and as numbers.

use crate::machine::time::Timestamp;

/// An RFC 3339 text; nothing when it is none.
pub(in crate::cli) fn read(text: &str) -> Option<Timestamp> {
    text.parse::<jiff::Timestamp>().ok().map(|at| Timestamp(at.as_millisecond()))
}

/// From one moment to another, as seconds; below zero when it is the other way round.
pub(in crate::cli) fn seconds(from: Timestamp, to: Timestamp) -> f64 {
    let millis = i32::try_from(to.0.saturating_sub(from.0)).unwrap_or(i32::MAX);
    f64::from(millis) / 1000.0
}
