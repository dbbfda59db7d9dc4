//! One timestamp on the clocks of openraft and of the standard library.

use std::time::Instant;

use openraft::Instant as _;
use openraft::alias::InstantOf;

use super::types::Types;

/// One moment in openraft's instants, which cannot be taken apart, and in the standard library's. With it the same moment
/// is the same however often it is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Start {
    standard: Instant,
    openraft: InstantOf<Types>,
}

impl Start {
    /// The standard library's is read first, so that no moment becomes later than it was.
    pub(super) fn now() -> Self {
        let standard = Instant::now();
        Self { standard, openraft: InstantOf::<Types>::now() }
    }

    /// A moment after the start.
    pub(super) fn of(self, moment: InstantOf<Types>) -> Instant {
        self.standard + (moment - self.openraft)
    }
}
