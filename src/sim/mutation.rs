//! Mutations: deliberate faults in the shell's contract and around the deciding functions, to prove that each fault is
//! detected. Mutations exist only with the feature `mutations`.

#[cfg(feature = "mutations")]
mod made;
#[cfg(not(feature = "mutations"))]
mod none;

#[cfg(feature = "mutations")]
use super::verdict::Property;

/// True if the mutation is active.
#[cfg(feature = "mutations")]
macro_rules! makes {
    ($mutation:expr, $name:ident) => {
        $mutation == $crate::Mutation::$name
    };
}

/// No mutation is active.
#[cfg(not(feature = "mutations"))]
macro_rules! makes {
    ($mutation:expr, $name:ident) => {{
        let _ = $mutation;
        false
    }};
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mutation {
    None,
    /// An approver posts a claim from its own state, without a round trip to a quorum.
    #[cfg(feature = "mutations")]
    PostUnconfirmed,
    /// An approver ignores the age of its claim.
    #[cfg(feature = "mutations")]
    LeaseUnchecked,
    /// An approver posts without a fresh document.
    #[cfg(feature = "mutations")]
    DocumentNotFresh,
    /// A replica that was restarted treats no attempt as possibly started in a previous run.
    #[cfg(feature = "mutations")]
    NothingInherited,
    /// An attempt that was lost with its machine is run once more.
    #[cfg(feature = "mutations")]
    LostRunAgain,
    /// A restore with an unknown outcome counts as lost.
    #[cfg(feature = "mutations")]
    UnknownRunAgain,
    /// A replica with a new disk starts unknown attempts, as if no start before the disk's replacement were possible.
    #[cfg(feature = "mutations")]
    NewDiskUnnoticed,
    /// A hook starts without a round trip to a quorum, at any time.
    #[cfg(feature = "mutations")]
    HookUnconfirmed,
    /// A single poll without an event is enough.
    #[cfg(feature = "mutations")]
    AbsenceAtOnce,
    /// A poll without a result does not interrupt the two consecutive polls.
    #[cfg(feature = "mutations")]
    BadReadDoesNotInterrupt,
    /// An empty body is accepted as a document without events.
    #[cfg(feature = "mutations")]
    EmptyIsNoEvents,
    /// A document with a lower incarnation is rejected as old.
    #[cfg(feature = "mutations")]
    IncarnationRules,
    /// An isolated replica posts before its journal is written.
    #[cfg(feature = "mutations")]
    JournalSkipped,
    /// The journal does not survive the process.
    #[cfg(feature = "mutations")]
    JournalLost,
    /// The time that a paused machine slept counts as isolation.
    #[cfg(feature = "mutations")]
    PauseCounts,
    /// No replica reconciles its journal.
    #[cfg(feature = "mutations")]
    NoAccount,
    /// Entries are acknowledged before the sync to the disk.
    #[cfg(feature = "mutations")]
    LogNotSynced,
    /// `takeover` does not wait.
    #[cfg(feature = "mutations")]
    TakeoverTooEarly,
    /// `takeover` approves events of the platform, too.
    #[cfg(feature = "mutations")]
    TakeoverOfAnything,
    /// `takeover` treats every VM as the lost VM.
    #[cfg(feature = "mutations")]
    TakeoverOfItself,
    /// `takeover` treats every minority as one half of a pair.
    #[cfg(feature = "mutations")]
    TakeoverByMinority,
    /// `takeover` ignores hooks that may run.
    #[cfg(feature = "mutations")]
    TakeoverDuringHooks,
    /// `plan` and `apply` take slots regardless of the members already lost in the group.
    #[cfg(feature = "mutations")]
    BudgetIgnored,
    /// `plan` and `apply` claim regardless of operator requests.
    #[cfg(feature = "mutations")]
    HoldIgnored,
    /// `plan` and `apply` claim as soon as the event is listed.
    #[cfg(feature = "mutations")]
    ClaimUnprepared,
    /// `plan` claims an event of a replica whose workloads are not registered yet.
    #[cfg(feature = "mutations")]
    UnregisteredIgnored,
    /// `plan` and `apply` claim an approved event once more.
    #[cfg(feature = "mutations")]
    ClaimAgain,
    /// `apply` restores before the event is over.
    #[cfg(feature = "mutations")]
    RestoreListed,
    /// `apply` replaces a recorded outcome by a late outcome.
    #[cfg(feature = "mutations")]
    LateOutcomeCounts,
    /// The leader's wall clock is the cluster's time.
    #[cfg(feature = "mutations")]
    OneClockRules,
    /// The leader ignores the platform's time from the endpoints.
    #[cfg(feature = "mutations")]
    PlatformUnheard,
    /// `apply` forgets the hooks that took a member out of service after the member is deregistered.
    #[cfg(feature = "mutations")]
    FormerForgotten,
    /// `plan` never expires an attempt.
    #[cfg(feature = "mutations")]
    NeverExpires,
    /// The approver does not compare its document with the decision.
    #[cfg(feature = "mutations")]
    DecisionUnchecked,
    /// `plan` makes a single claim for each event.
    #[cfg(feature = "mutations")]
    NeverClaimsAgain,
}

#[cfg(feature = "mutations")]
impl Mutation {
    /// Each mutation, with the property that has to detect the mutation.
    pub const ALL: [(Self, Property); 35] = [
        (Self::PostUnconfirmed, Property::S3),
        (Self::LeaseUnchecked, Property::S3),
        (Self::DocumentNotFresh, Property::S2),
        (Self::NothingInherited, Property::S2),
        (Self::LostRunAgain, Property::S7),
        (Self::UnknownRunAgain, Property::S7),
        (Self::NewDiskUnnoticed, Property::S7),
        (Self::HookUnconfirmed, Property::S7),
        (Self::AbsenceAtOnce, Property::S6),
        (Self::BadReadDoesNotInterrupt, Property::S6),
        (Self::EmptyIsNoEvents, Property::S6),
        (Self::IncarnationRules, Property::L3),
        (Self::JournalSkipped, Property::S2),
        (Self::JournalLost, Property::S2),
        (Self::PauseCounts, Property::S5),
        (Self::NoAccount, Property::L3),
        (Self::LogNotSynced, Property::S9),
        (Self::TakeoverTooEarly, Property::S5),
        (Self::TakeoverOfAnything, Property::S5),
        (Self::TakeoverOfItself, Property::S5),
        (Self::TakeoverByMinority, Property::S5),
        (Self::TakeoverDuringHooks, Property::S5),
        (Self::BudgetIgnored, Property::S4),
        (Self::HoldIgnored, Property::Wishes),
        (Self::ClaimUnprepared, Property::S1),
        (Self::UnregisteredIgnored, Property::S1),
        (Self::ClaimAgain, Property::S2),
        (Self::RestoreListed, Property::S8),
        (Self::LateOutcomeCounts, Property::Record),
        (Self::OneClockRules, Property::S13),
        (Self::PlatformUnheard, Property::S13),
        (Self::FormerForgotten, Property::L1),
        (Self::NeverExpires, Property::L2),
        (Self::DecisionUnchecked, Property::S10),
        (Self::NeverClaimsAgain, Property::L4),
    ];
}
