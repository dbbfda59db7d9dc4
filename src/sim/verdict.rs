//! What a run showed.

use std::time::Duration;

use allclear_core::model::time::Timestamp;
use allclear_core::verify::invariants::Broken;

/// The property that is broken, by the name it has in `behaviour.md` 13.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Property {
    S1,
    S2,
    S3,
    S4,
    S5,
    S6,
    S7,
    S8,
    S9,
    S10,
    S11,
    S12,
    S13,
    S14,
    L1,
    L2,
    L3,
    L4,
    L7,
    /// An operator's hold, pause or approval was not respected.
    Wishes,
    /// Something recorded changed, or an event took a way that there is not.
    Record,
}

impl From<Broken> for Property {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::ClaimedUnprepared => Self::S1,
            Broken::ClaimedTwice => Self::S2,
            Broken::ApprovedUnclaimed => Self::S3,
            Broken::BudgetExceeded => Self::S4,
            Broken::TakenOverWrongly => Self::S5,
            Broken::FailoverOutOfTurn => Self::S11,
            Broken::NotRestored => Self::S12,
            Broken::StintMixed => Self::S14,
            Broken::GivenBackTooOften => Self::L7,
            Broken::RunTwice | Broken::RunBeside => Self::S7,
            Broken::AskedWrongly => Self::L2,
            Broken::RestoredWrongly | Broken::UndoneWrongly => Self::S8,
            Broken::ClaimedAgainstWish | Broken::ApprovedUnseen => Self::Wishes,
            Broken::Forgotten
            | Broken::DrillApproved
            | Broken::DrillBesideEvent
            | Broken::StageOutOfOrder
            | Broken::Misplaced
            | Broken::Rewritten => Self::Record,
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Breach {
    pub property: Property,
    pub what: String,
    pub at: Timestamp,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    Passed,
    /// There were to be faults, and none took effect: it proves nothing.
    Unknown,
    Failed(Breach),
}

/// One world from its beginning to its end.
#[derive(Clone, Debug)]
pub struct Run {
    pub verdict: Verdict,
    pub simulated: Duration,
    /// How many faults there were to be, and how many took effect.
    pub faults: usize,
    pub effective: usize,
    /// Approvals that were posted by a replica without a quorum.
    pub alone: usize,
    /// The same for two runs that were the same in every step.
    pub digest: u64,
    /// Line by line, where that was asked for.
    pub trace: Vec<String>,
}

impl Run {
    pub fn breach(&self) -> Option<&Breach> {
        match &self.verdict {
            Verdict::Failed(breach) => Some(breach),
            Verdict::Passed | Verdict::Unknown => None,
        }
    }
}
