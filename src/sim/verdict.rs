//! The result of a run.

use std::time::Duration;

use allclear_core::model::time::Timestamp;
use allclear_core::verify::invariants::Violation;

/// The broken property, by its id in `SPEC.md` 18.
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
    /// A recorded fact changed, or an event took an undefined transition.
    Record,
}

impl From<Violation> for Property {
    fn from(broken: Violation) -> Self {
        match broken {
            Violation::ClaimedUnprepared => Self::S1,
            Violation::ClaimedTwice | Violation::LastResortTwice => Self::S2,
            Violation::ApprovedUnclaimed => Self::S3,
            Violation::BudgetExceeded => Self::S4,
            Violation::TakenOverWrongly => Self::S5,
            Violation::FailoverOutOfTurn => Self::S11,
            Violation::NotRestored => Self::S12,
            Violation::StintMixed => Self::S14,
            Violation::GivenBackTooOften => Self::L7,
            Violation::RunTwice | Violation::RunBeside => Self::S7,
            Violation::AskedWrongly => Self::L2,
            Violation::RestoredWrongly | Violation::UndoneWrongly => Self::S8,
            Violation::ClaimedAgainstWish | Violation::ApprovedUnseen => Self::Wishes,
            Violation::Forgotten
            | Violation::DrillApproved
            | Violation::DrillBesideEvent
            | Violation::StageOutOfOrder
            | Violation::Misplaced
            | Violation::Rewritten => Self::Record,
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
pub enum RunVerdict {
    Passed,
    /// Faults were planned, and none took effect: the run proves nothing.
    Unknown,
    Failed(Breach),
}

/// One world from its beginning to its end.
#[derive(Clone, Debug)]
pub struct SimulationRun {
    pub verdict: RunVerdict,
    pub simulated: Duration,
    /// The number of planned faults, and the number of effective faults.
    pub faults: usize,
    pub effective: usize,
    /// Approvals posted by a replica without a quorum.
    pub alone: usize,
    /// Equal for two runs with equal steps.
    pub digest: u64,
    /// Line by line, if requested.
    pub trace: Vec<String>,
}

impl SimulationRun {
    pub fn breach(&self) -> Option<&Breach> {
        match &self.verdict {
            RunVerdict::Failed(breach) => Some(breach),
            RunVerdict::Passed | RunVerdict::Unknown => None,
        }
    }
}
