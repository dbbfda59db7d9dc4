//! One timestamp on the clocks of openraft and of the standard library.

use std::time::Instant;

use openraft::Instant as _;
use openraft::alias::InstantOf;

use super::types::Types;

/// One timestamp as an instant of openraft, which is opaque, and as an instant of the standard library. With this pair,
/// every conversion of a timestamp has an equal result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    standard: Instant,
    openraft: InstantOf<Types>,
}

impl Start {
    /// The standard library's clock is read first, so that no converted timestamp is later than the original.
    pub(super) fn now() -> Self {
        let standard = Instant::now();
        Self { standard, openraft: InstantOf::<Types>::now() }
    }

    /// Converts a timestamp after the start.
    pub(super) fn of(self, moment: InstantOf<Types>) -> Instant {
        self.standard + (moment - self.openraft)
    }
}
