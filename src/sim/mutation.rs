//! Deliberate mistakes in the shell's contract and around the functions that decide, to see that they are seen. Only with
//! the feature `mutations` can one be made.

#[cfg(feature = "mutations")]
mod made;
#[cfg(not(feature = "mutations"))]
mod none;

#[cfg(feature = "mutations")]
use super::verdict::Property;

/// Whether this mistake is made.
#[cfg(feature = "mutations")]
macro_rules! makes {
    ($mutation:expr, $name:ident) => {
        $mutation == $crate::Mutation::$name
    };
}

/// None is made.
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
    /// An approver posts what it saw claimed, without a round trip to a quorum.
    #[cfg(feature = "mutations")]
    PostUnconfirmed,
    /// It does not mind how old its claim is.
    #[cfg(feature = "mutations")]
    LeaseUnchecked,
    /// It posts without a fresh document.
    #[cfg(feature = "mutations")]
    DocumentNotFresh,
    /// A replica that was restarted takes nothing for something that it may have done already.
    #[cfg(feature = "mutations")]
    NothingInherited,
    /// What was lost with its machine is run once more.
    #[cfg(feature = "mutations")]
    LostRunAgain,
    /// What puts back and says that nobody can tell counts as lost.
    #[cfg(feature = "mutations")]
    UnknownRunAgain,
    /// A replica whose disk is new begins what it does not know, as if nobody could have begun it before.
    #[cfg(feature = "mutations")]
    NewDiskUnnoticed,
    /// A hook starts without a round trip to a quorum, whatever time it is.
    #[cfg(feature = "mutations")]
    HookUnconfirmed,
    /// One poll without an event is enough.
    #[cfg(feature = "mutations")]
    AbsenceAtOnce,
    /// A poll that brought nothing does not interrupt the row of two.
    #[cfg(feature = "mutations")]
    BadReadDoesNotInterrupt,
    /// An empty body is taken for a document without events.
    #[cfg(feature = "mutations")]
    EmptyIsNoEvents,
    /// A document with a lower incarnation is taken for an old one.
    #[cfg(feature = "mutations")]
    IncarnationRules,
    /// A lone replica posts before its journal is written.
    #[cfg(feature = "mutations")]
    JournalSkipped,
    /// The journal does not survive the process.
    #[cfg(feature = "mutations")]
    JournalLost,
    /// Time that a paused machine slept through counts for being alone.
    #[cfg(feature = "mutations")]
    PauseCounts,
    /// Nobody gives account.
    #[cfg(feature = "mutations")]
    NoAccount,
    /// Entries are acknowledged before they are on the disk.
    #[cfg(feature = "mutations")]
    LogNotSynced,
    /// `takeover` does not wait.
    #[cfg(feature = "mutations")]
    TakeoverTooEarly,
    /// `takeover` approves what the platform asks for.
    #[cfg(feature = "mutations")]
    TakeoverOfAnything,
    /// `takeover` takes every VM for the lost one.
    #[cfg(feature = "mutations")]
    TakeoverOfItself,
    /// `takeover` takes every minority for one of a pair.
    #[cfg(feature = "mutations")]
    TakeoverByMinority,
    /// `takeover` minds no hook that may run.
    #[cfg(feature = "mutations")]
    TakeoverDuringHooks,
    /// `plan` and `apply` take slots whatever the group has lost already.
    #[cfg(feature = "mutations")]
    BudgetIgnored,
    /// `plan` and `apply` claim whatever an operator wants.
    #[cfg(feature = "mutations")]
    HoldIgnored,
    /// `plan` and `apply` claim as soon as the event is seen.
    #[cfg(feature = "mutations")]
    ClaimUnprepared,
    /// `plan` claims an event of a replica that has yet to say what runs there.
    #[cfg(feature = "mutations")]
    UnregisteredIgnored,
    /// `plan` and `apply` claim once more what is approved already.
    #[cfg(feature = "mutations")]
    ClaimAgain,
    /// `apply` puts back before the event is over.
    #[cfg(feature = "mutations")]
    RestoreListed,
    /// `apply` lets a late outcome replace the one that was recorded.
    #[cfg(feature = "mutations")]
    LateOutcomeCounts,
    /// The leader's wall clock is the cluster's time.
    #[cfg(feature = "mutations")]
    OneClockRules,
    /// The leader does not mind what endpoints tell of the platform's time.
    #[cfg(feature = "mutations")]
    PlatformUnheard,
    /// `apply` forgets by which hooks a member was taken away that is registered no more.
    #[cfg(feature = "mutations")]
    FormerForgotten,
    /// `plan` never gives an attempt up.
    #[cfg(feature = "mutations")]
    NeverExpires,
    /// The approver does not ask whether its document is of what was decided.
    #[cfg(feature = "mutations")]
    DecisionUnchecked,
    /// `plan` makes one claim for each event.
    #[cfg(feature = "mutations")]
    NeverClaimsAgain,
}

#[cfg(feature = "mutations")]
impl Mutation {
    /// Each, with the property by which it is to be seen.
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
