//! The rules of `behaviour.md` 7, so that each can be left out, and where it shows that it was.

use crate::action::Action::{
    self, Announce, Begin, BuildAccount, Claim, Cut, Heal, Lag, Post, Settle, Suspect, TakeUp,
};
use crate::cluster::{Bounds, Cluster, NONE, PLATFORM, PLATFORM_WITH_HOOK, Source, USER, USER_WITH_HOOK};
use crate::world::Breach::{self, S2, S4, S5};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// An account of an older number adds its journal and clears nothing.
    OldAccountsClearNothing,
    /// Granting a vote clears nothing.
    VotesClearNothing,
    /// Being reachable again clears nothing.
    ReachabilityClearsNothing,
    /// Leaving the voters clears nothing.
    RemovalClearsNothing,
    /// Who is removed from the voters is suspect from then on: nobody counts its silence any more.
    WhoIsRemovedIsSuspect,
    /// A voter out of contact for half of `takeover_after` is suspect.
    SilenceIsSuspect,
    /// Also one that is suspect already gets a new number. A pair can do without: whoever of it leads has lost its
    /// quorum by each loss of contact, and leads anew.
    EachLossIsANewNumber,
    /// `Lead`: a new leader starts a new number for every voter.
    NewLeadersSuspect,
    /// `Lead` names the leader itself, too.
    LeadersSuspectThemselves,
    /// `Lead` once more, in the same term, after half of `takeover_after` without a quorum.
    LeadersComeBackAnew,
    /// And when a leader is restarted and leads on: it does not know who was silent, or what it appended.
    LeadersStartAnew,
    /// A leader appends no claim when it has heard of no quorum for half of `takeover_after`, or since its start: the
    /// claim would stand in the log before the next `Lead`, where nobody is suspect.
    LeadersClaimInContact,
    /// A leader claims nothing while it is itself suspect. Not in the list: that anybody is suspect, the leader too,
    /// holds every claim that could do harm. `SPARE` says in which bounds.
    SuspectLeadersClaimNothing,
    /// After `Lead` only claims by that leader are taken. Not in the list: the guard of the claim is asked when it is
    /// committed, and counts the suspicion that began meanwhile. `SPARE` says in which bounds.
    OnlyTheLeaderClaims,
    /// While any voter is suspect, open user-initiated events count as taken for the claims of others.
    SuspicionTakesUserEvents,
    /// A lone secondary waits for `takeover_after`.
    AloneOnlyAfterTheWait,
    /// And for the user budget, where a quorum may live without it.
    AloneOnlyAfterTheQuorumsTime,
    /// And until it has seen the event for `takeover_after`: all others have seen it by then.
    AloneOnlyWhatIsSeenForLong,
    /// The event is the only one of its document. It follows that no other approval of its own is listed.
    AloneOnlyTheOnlyEvent,
    /// And the only one of its state that is not closed.
    AloneMindsItsState,
    /// And of the entries it has acknowledged and not applied.
    TheTailCounts,
    /// And, where a quorum may live without it, of what its documents have shown and its state does not know as
    /// closed. After a restart it remembers nothing, and acts only once it had contact.
    AloneRemembersWhatItSaw,
    /// Nothing that is held, as far as it has acknowledged the hold.
    AloneHeedsHolds,
    /// Without a quorum, user-initiated events only.
    AloneOnlyForUsers,
    /// Without a quorum, nothing while a committed hook may still run.
    AloneOnlyWithoutHooks,
    /// A report names all events of its document at once.
    ReportsAreWhole,
    /// The intent is in the journal, synced, before the post.
    JournalOutlivesCrashes,
    /// An account carries intents for events that the log does not know, too.
    AccountsNameUnknownEvents,
    /// Writing an intent and making an account exclude each other.
    IntentsExcludeAccounts,
    /// A claim is never taken back.
    ClaimsStand,
    /// A linearizable read right before the post.
    ReadBeforePost,
}

/// A rule, what breaks when it is left out, and the smallest cluster where that shows.
pub(crate) struct Needed {
    pub(crate) rule: Rule,
    pub(crate) breach: Breach,
    pub(crate) cluster: Cluster,
}

const fn needed(rule: Rule, breach: Breach, replicas: usize, events: &'static [Source], bounds: Bounds) -> Needed {
    Needed { rule, breach, cluster: Cluster::new(replicas, events, bounds).left_out(rule) }
}

const fn cuts(cuts: u8) -> Bounds {
    Bounds { cuts, ..NONE }
}

/// One event of each kind.
const BOTH: &[Source] = &[USER, PLATFORM];

/// A loss of contact that the log knows of, an account on its way, and contact lost once more.
const TWICE_LOST: &[Action] = &[Cut(2), Suspect(2), Heal(2), BuildAccount(2), Cut(2)];

/// What a secondary has acknowledged and not applied: that there is an event, that it is being prepared, and a claim.
const TOUCHED_IN_THE_TAIL: &[Action] =
    &[Lag(1), Announce(1, 0), TakeUp(0), Begin(1), Settle(1), Claim(1, 0), Post(0, 1)];

pub(crate) fn all_needed() -> Vec<Needed> {
    let removals = Bounds { removals: 1, ..cuts(1) };
    let elections = Bounds { elections: 1, ..cuts(1) };
    let differ = |needed: Needed| Needed { cluster: needed.cluster.with_differing_documents(), ..needed };
    let after = |after, needed: Needed| Needed { cluster: needed.cluster.after(after), ..needed };
    vec![
        needed(Rule::OldAccountsClearNothing, S4, 2, BOTH, cuts(2)),
        needed(Rule::VotesClearNothing, S4, 2, BOTH, elections),
        needed(Rule::ReachabilityClearsNothing, S4, 3, BOTH, cuts(1)),
        after(&[Cut(2), Suspect(2)], needed(Rule::RemovalClearsNothing, S4, 3, BOTH, removals)),
        needed(Rule::WhoIsRemovedIsSuspect, S4, 3, BOTH, removals),
        needed(Rule::SilenceIsSuspect, S4, 3, BOTH, cuts(1)),
        after(TWICE_LOST, needed(Rule::EachLossIsANewNumber, S4, 3, BOTH, cuts(2))),
        needed(Rule::NewLeadersSuspect, S4, 3, BOTH, elections),
        needed(Rule::LeadersSuspectThemselves, S4, 2, BOTH, cuts(1)),
        needed(Rule::LeadersComeBackAnew, S4, 2, BOTH, cuts(1)),
        needed(Rule::LeadersStartAnew, S4, 2, BOTH, Bounds { crashes: 1, ..NONE }),
        needed(Rule::LeadersClaimInContact, S4, 2, BOTH, Bounds { appends: 1, ..cuts(1) }),
        needed(Rule::SuspicionTakesUserEvents, S4, 2, BOTH, cuts(1)),
        needed(Rule::AloneOnlyAfterTheWait, S4, 2, BOTH, cuts(1)),
        needed(Rule::AloneOnlyAfterTheQuorumsTime, S5, 3, &[USER_WITH_HOOK], cuts(1)),
        differ(needed(Rule::AloneOnlyWhatIsSeenForLong, S4, 2, BOTH, cuts(1))),
        needed(Rule::AloneOnlyTheOnlyEvent, S4, 2, &[USER, USER], cuts(1)),
        needed(Rule::AloneMindsItsState, S4, 2, &[USER, PLATFORM_WITH_HOOK], cuts(1)),
        needed(Rule::TheTailCounts, S5, 2, &[USER_WITH_HOOK], cuts(1)),
        after(TOUCHED_IN_THE_TAIL, needed(Rule::TheTailCounts, S4, 2, &[USER, PLATFORM_WITH_HOOK], cuts(1))),
        needed(Rule::TheTailCounts, S5, 2, &[USER], Bounds { holds: 1, ..cuts(1) }),
        needed(Rule::AloneRemembersWhatItSaw, S4, 3, &[USER, PLATFORM_WITH_HOOK], cuts(1)),
        needed(Rule::AloneHeedsHolds, S5, 2, &[USER], Bounds { holds: 1, ..cuts(1) }),
        needed(Rule::AloneOnlyForUsers, S5, 2, &[PLATFORM], cuts(1)),
        needed(Rule::AloneOnlyWithoutHooks, S5, 2, &[USER_WITH_HOOK], cuts(1)),
        needed(Rule::ReportsAreWhole, S4, 2, BOTH, cuts(1)),
        needed(Rule::JournalOutlivesCrashes, S4, 2, BOTH, Bounds { crashes: 1, ..cuts(1) }),
        needed(Rule::AccountsNameUnknownEvents, S4, 2, BOTH, cuts(1)),
        needed(Rule::IntentsExcludeAccounts, S4, 2, BOTH, cuts(1)),
        needed(Rule::ClaimsStand, S4, 2, BOTH, NONE),
        needed(Rule::ReadBeforePost, S2, 3, &[USER], cuts(1)),
    ]
}

/// Rules that a pair could do without, as far as an isolation, an election and a claim that comes late go. They are
/// kept because they cost nothing, and because they are easier to believe than the reason why nothing happens.
pub(crate) const SPARE: [Rule; 2] = [Rule::SuspectLeadersClaimNothing, Rule::OnlyTheLeaderClaims];
