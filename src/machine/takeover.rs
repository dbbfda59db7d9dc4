//! The lone secondary (`behaviour.md` 7, rung 4): whether a replica that hears no leader approves an event alone, and
//! when. Only what a user asked for, only what stands alone, and never while a committed hook may still run.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::attempt::ENDED_WITHIN;
use super::blocker;
use super::budget;
use super::claim::PostOutcome;
use super::document::{Announcement, Document, Source, Status};
use super::event::Event;
use super::id::{EventId, VmName};
use super::policy::{self, Action};
use super::situation::Situation;
use super::state::State;
use super::time::Timestamp;

/// Each further candidate waits this much longer than the one before it.
const NEXT_CANDIDATE_AFTER: Duration = Duration::from_secs(5);
/// Before a post that was not accepted is made again.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
/// A journal never holds more: so many approvals in one loss of contact are no accident any more.
pub const JOURNAL_LIMIT: usize = 100;

/// One approval that a replica gave, or was about to give, without a quorum.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Takeover {
    pub approver: VmName,
    /// When it was written down, before the post. Tells the takeovers of one replica apart.
    pub at: Timestamp,
    /// Since when its replica heard no leader.
    pub alone_since: Timestamp,
    /// The voters it did not reach.
    pub out_of_reach: Vec<VmName>,
    /// `None` while nobody knows what became of the post.
    pub outcome: Option<(PostOutcome, Timestamp)>,
    /// When it came into the log; `None` in a journal.
    pub recorded: Option<Timestamp>,
}

impl Takeover {
    pub fn outcome_is(&self, outcome: &PostOutcome) -> bool {
        self.outcome.as_ref().is_some_and(|(found, _)| found == outcome)
    }

    /// The platform has, or may have, this approval.
    pub fn may_be_posted(&self) -> bool {
        matches!(self.outcome, None | Some((PostOutcome::Accepted | PostOutcome::Unknown(_), _)))
    }
}

/// A takeover with its event, as the replica's document showed it: an entry of its journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Journaled {
    pub announcement: Announcement,
    pub takeover: Takeover,
}

/// What a voter that hears no leader knows beside its log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Alone {
    /// Since when it hears none.
    pub since: Timestamp,
    /// In the order of the configuration, this replica among them.
    pub voters: Vec<VmName>,
    /// The voters that answer it.
    pub reached: BTreeMap<VmName, Peer>,
    /// What its endpoint said last.
    pub document: Document,
    /// Since when its documents have listed an event without a break.
    pub seen_since: BTreeMap<EventId, Timestamp>,
    /// What it did alone and the log may not know.
    pub journal: Vec<Journaled>,
}

/// A voter that answers a replica which hears no leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The leader it hears.
    pub leader: Option<String>,
    /// It could approve as well.
    pub is_healthy: bool,
}

/// Whether and when a replica approves an event alone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outlook {
    From(Timestamp),
    /// Not as long as this is so.
    Not(Obstacle),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// Without a quorum only what a user asked for is approved.
    NotUserInitiated,
    NotScheduled,
    /// Policy leaves it to others.
    Observed,
    /// A quorum that lives elsewhere may prepare it for as long as its notice lasts.
    WithoutBudget,
    /// A hook failed for good and holds the event.
    HookFailed,
    /// It would not be the only event of its group.
    OtherEvent(EventId),
    /// This replica has approved it already.
    Approved,
    /// This replica approved another event, which is not over.
    OtherApproval(EventId),
    JournalFull,
    /// Another voter hears a leader.
    LedElsewhere(VmName),
    NoVoter,
}

impl fmt::Display for Obstacle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotUserInitiated => f.write_str("without a quorum only user-initiated events are approved"),
            Self::NotScheduled => f.write_str("this replica does not see it as Scheduled"),
            Self::Observed => f.write_str("policy leaves it to others"),
            Self::WithoutBudget => f.write_str("its preparation has no budget that could be over"),
            Self::HookFailed => f.write_str("a hook failed and holds it"),
            Self::OtherEvent(id) => write!(f, "event {id} is open in the same group"),
            Self::Approved => f.write_str("this replica has approved it already"),
            Self::OtherApproval(id) => write!(f, "this replica approved event {id}, which is not over"),
            Self::JournalFull => f.write_str("the journal of this replica is full"),
            Self::LedElsewhere(name) => write!(f, "{name} hears a leader, which is to decide"),
            Self::NoVoter => f.write_str("this replica is no voter"),
        }
    }
}

/// Whether and when `situation.me` approves the event alone; `None` while it hears a leader.
///
/// `state` is to hold what may be committed as well: the entries of this replica's log that it has not applied yet.
pub fn outlook(state: &State, situation: &Situation, id: &EventId) -> Option<Outlook> {
    let alone = situation.alone.as_ref()?;
    Some(match obstacle(state, situation, alone, id) {
        Some(obstacle) => Outlook::Not(obstacle),
        None => earliest(state, situation, alone, id),
    })
}

/// The event that `situation.me` approves alone now.
pub fn takeover<'a>(state: &State, situation: &'a Situation) -> Option<&'a Announcement> {
    let alone = situation.alone.as_ref()?;
    alone.document.events.iter().find(
        |announced| matches!(outlook(state, situation, &announced.id), Some(Outlook::From(at)) if at <= situation.now),
    )
}

/// What stands between an event and its approval here, apart from time.
fn obstacle(state: &State, situation: &Situation, alone: &Alone, id: &EventId) -> Option<Obstacle> {
    let me = &situation.me;
    let Some(announced) = alone.document.get(id).filter(|announced| announced.status == Status::Scheduled) else {
        return Some(Obstacle::NotScheduled);
    };
    if !alone.voters.contains(me) {
        return Some(Obstacle::NoVoter);
    }
    if announced.source != Source::User {
        return Some(Obstacle::NotUserInitiated);
    }
    let known = state.open.get(id);
    if known.is_some_and(|event| event.is_accepted()) || own(state, alone, me).any(|(of, it)| of == id && accepted(it))
    {
        return Some(Obstacle::Approved);
    }
    match known.and_then(|event| event.treatment.clone()).unwrap_or_else(|| chosen(situation, announced)) {
        treatment if treatment.action == Action::Observe => return Some(Obstacle::Observed),
        treatment if treatment.action == Action::Prepare && treatment.budget.is_none() => {
            return Some(Obstacle::WithoutBudget);
        }
        _ => {}
    }
    if known.is_some_and(|event| blocker::failed_for_good(state, event, situation.now).is_some()) {
        return Some(Obstacle::HookFailed);
    }
    if let Some(other) = other_event(state, situation, alone, announced) {
        return Some(Obstacle::OtherEvent(other));
    }
    let other = own(state, alone, me).find(|(of, it)| *of != id && it.may_be_posted() && is_listed(alone, of));
    if let Some((other, _)) = other {
        return Some(Obstacle::OtherApproval(other.clone()));
    }
    if alone.journal.len() >= JOURNAL_LIMIT {
        return Some(Obstacle::JournalFull);
    }
    let led = alone.reached.iter().find(|(_, peer)| peer.leader.is_some());
    led.map(|(name, _)| Obstacle::LedElsewhere(name.clone()))
}

fn chosen(situation: &Situation, announced: &Announcement) -> policy::Treatment {
    policy::choose(&situation.policy, announced, &situation.members, situation.now)
}

/// What this replica did alone, by its journal and by its log.
fn own<'a>(state: &'a State, alone: &'a Alone, me: &'a VmName) -> impl Iterator<Item = (&'a EventId, &'a Takeover)> {
    let logged = state.open.values().flat_map(|event| event.takeovers.iter().map(|it| (&event.announcement.id, it)));
    let journaled = alone.journal.iter().map(|entry| (&entry.announcement.id, &entry.takeover));
    logged.filter(move |(_, takeover)| takeover.approver == *me).chain(journaled)
}

fn accepted(takeover: &Takeover) -> bool {
    takeover.outcome_is(&PostOutcome::Accepted)
}

fn is_listed(alone: &Alone, id: &EventId) -> bool {
    alone.document.get(id).is_some()
}

/// Another event, of the document or not yet put back, that takes members of the same group.
fn other_event(state: &State, situation: &Situation, alone: &Alone, announced: &Announcement) -> Option<EventId> {
    let members =
        |vms: &[VmName]| -> Vec<VmName> { vms.iter().filter(|vm| situation.members.contains(vm)).cloned().collect() };
    let own = members(&announced.resources);
    let others = |id: &EventId| *id != announced.id;
    let listed = alone.document.events.iter().filter(|other| others(&other.id));
    let mut known = state.open.values().filter(|event| others(&event.announcement.id));
    let listed = listed.map(|other| (&other.id, &other.resources));
    let is_near = |resources: &[VmName]| budget::share_a_group(state, &own, &members(resources));
    let found = listed.filter(|(_, resources)| is_near(resources)).map(|(id, _)| id.clone()).next();
    found.or_else(|| known.find(|event| is_near(&taken_by(event))).map(|event| event.announcement.id.clone()))
}

/// The VMs that an event names, or touched.
fn taken_by(event: &Event) -> Vec<VmName> {
    let touched = event.attempts.iter().map(|attempt| &attempt.member.vm);
    event.announcement.resources.iter().chain(touched).cloned().collect()
}

/// When the wait is over (`behaviour.md` 7). Documents agree within half of `takeover_after`: so an event is also
/// waited with for as long as it takes to see what a quorum may have decided about another one meanwhile.
fn earliest(state: &State, situation: &Situation, alone: &Alone, id: &EventId) -> Outlook {
    let timing = situation.timing;
    let seen = alone.seen_since.get(id).copied().unwrap_or(situation.now);
    let mut at = alone.since.max(seen).plus(timing.takeover_after);
    let event = state.open.get(id);
    if may_be_decided_elsewhere(situation, alone) {
        let treatment = event.and_then(|event| event.treatment.clone());
        let treatment = treatment.or_else(|| Some(chosen(situation, alone.document.get(id)?)));
        let budget = treatment.and_then(|treatment| treatment.budget).unwrap_or_default();
        let committed = event.and_then(Event::budget_ends).unwrap_or(seen);
        at = at.max(seen.plus(budget).max(committed).plus(timing.takeover_grace));
    }
    let running = event.into_iter().flat_map(|event| &event.attempts).filter(|attempt| attempt.outcome.is_none());
    let running_until = running.map(|attempt| attempt.deadline.plus(ENDED_WITHIN));
    let tried = own(state, alone, &situation.me).filter(|(of, _)| *of == id);
    let again = tried.map(|(_, it)| it.outcome.as_ref().map_or(it.at, |(_, at)| *at).plus(AGAIN_AFTER));
    let at = running_until.chain(again).fold(at.plus(wait_in_line(situation, alone, id)), Timestamp::max);
    Outlook::From(at)
}

/// The voters out of reach could form a quorum without this replica.
fn may_be_decided_elsewhere(situation: &Situation, alone: &Alone) -> bool {
    out_of_reach(situation, alone).len() > alone.voters.len() / 2
}

pub fn out_of_reach(situation: &Situation, alone: &Alone) -> Vec<VmName> {
    let gone = |name: &&VmName| **name != situation.me && !alone.reached.contains_key(name);
    alone.voters.iter().filter(gone).cloned().collect()
}

/// Those before it in the order of the configuration that could do it as well; and whoever is to go waits for
/// somebody who stays.
fn wait_in_line(situation: &Situation, alone: &Alone, id: &EventId) -> Duration {
    let before = alone.voters.iter().take_while(|name| **name != situation.me);
    let able = before.filter(|name| alone.reached.get(name).is_some_and(|peer| peer.is_healthy)).count();
    let is_affected = alone.document.get(id).is_some_and(|announced| announced.resources.contains(&situation.me));
    NEXT_CANDIDATE_AFTER * u32::try_from(able + usize::from(is_affected)).unwrap_or(u32::MAX)
}
