//! The rules of `behaviour.md` 7, so that each can be left out.

use crate::world::{Breach, Faults, Source};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// A report of an older number adds its journal and clears nothing.
    OldReportsClearNothing,
    /// Granting a vote clears nothing.
    VotesClearNothing,
    /// Being reachable again clears nothing.
    ReachabilityClearsNothing,
    /// A new leader suspects every other voter. Not in the list: here a new leader knows at once who is silent, which
    /// makes up for it.
    NewLeadersSuspect,
    /// A voter out of contact for half of `takeover_after` is suspect.
    SilenceIsSuspect,
    /// While any voter is suspect, open user-initiated events count as taken.
    SuspicionTakesUserEvents,
    /// A replica that was without contact or restarted claims nothing, as leader too, before its report. Not in
    /// the list: a leader that starts a new number for itself, too, is held by its own suspicion.
    OwnReportComesFirst,
    /// A lone secondary approves the only open event of the document that touches the group.
    AloneOnlyTheOnlyEvent,
    /// The intent is in the journal, synced, before the post. Not in the list: no search has been long enough.
    JournalOutlivesCrashes,
    /// A report carries intents for events that the log does not know, too.
    ReportsNameUnknownEvents,
    /// Writing an intent and building a report exclude each other.
    IntentsExcludeReports,
    /// A claim is never taken back.
    ClaimsStand,
    /// A linearizable read right before the post.
    ReadBeforePost,
    /// Without a quorum, user-initiated events only.
    AloneOnlyForUsers,
    /// Without a quorum, nothing while a committed hook may still run.
    AloneOnlyWithoutHooks,
}

/// Rules with what breaks when one is left out, and the smallest cluster where that shows.
pub(crate) const NEEDED: [(Rule, Breach, usize, &[Source], Faults); 12] = {
    const fn faults(cuts: u8, crashes: u8, elections: u8) -> Faults {
        Faults { cuts, crashes, elections }
    }
    use Source::{Platform, User, UserWithHook};
    [
        (Rule::OldReportsClearNothing, Breach::S4, 2, &[User, Platform], faults(2, 0, 0)),
        (Rule::VotesClearNothing, Breach::S4, 2, &[User, Platform], faults(1, 0, 1)),
        (Rule::ReachabilityClearsNothing, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::SilenceIsSuspect, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::SuspicionTakesUserEvents, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::AloneOnlyTheOnlyEvent, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::ReportsNameUnknownEvents, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::IntentsExcludeReports, Breach::S4, 2, &[User, Platform], faults(1, 0, 0)),
        (Rule::ClaimsStand, Breach::S4, 2, &[User, Platform], faults(0, 0, 0)),
        (Rule::ReadBeforePost, Breach::S2, 3, &[User], faults(1, 0, 0)),
        (Rule::AloneOnlyForUsers, Breach::S5, 2, &[Platform], faults(1, 0, 0)),
        (Rule::AloneOnlyWithoutHooks, Breach::S5, 2, &[UserWithHook], faults(1, 0, 0)),
    ]
};
