//! The lone secondary (`behaviour.md` 7, rung 4): whether a replica that hears no leader approves an event alone, and
//! when. Only what a user asked for, only what stands alone, and never while a committed hook may still run.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use super::alone::Alone;
use super::attempt::ENDED_WITHIN;
use super::blocker;
use super::budget;
use super::claim::PostOutcome;
use super::document::{Announcement, Source, Status};
use super::event::Event;
use super::id::{EventId, VmName};
use super::operator::Halt;
use super::policy::{self, Action};
use super::situation::Situation;
use super::state::State;
use super::time::Timestamp;

/// Each further candidate waits this much longer than the one before it.
const NEXT_CANDIDATE_AFTER: Duration = Duration::from_secs(5);
/// Before a post that was not accepted is made again, doubled with each further one, up to the other.
const AGAIN_AFTER: Duration = Duration::from_secs(5);
const AGAIN_AFTER_AT_MOST: Duration = Duration::from_mins(5);
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
    Approved,
    /// By an operator.
    Held(Halt),
    /// Everything, by an operator.
    Paused(Halt),
    /// This replica approved another event, which is not over.
    OtherApproval(EventId),
    JournalFull,
    /// Another voter hears a leader.
    LedElsewhere(VmName),
    /// It was restarted, was paused or saw no documents while it was alone: an event that has yet to be put back may
    /// have gone by unseen.
    Forgetful,
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
            Self::Approved => f.write_str("it is approved already"),
            Self::Held(halt) => write!(f, "it is held {halt}"),
            Self::Paused(halt) => write!(f, "approvals are paused {halt}"),
            Self::OtherApproval(id) => write!(f, "this replica approved event {id}, which is not over"),
            Self::JournalFull => f.write_str("the journal of this replica is full"),
            Self::LedElsewhere(name) => write!(f, "{name} hears a leader, which is to decide"),
            Self::Forgetful => f.write_str("this replica may have missed an event since it last heard a leader"),
            Self::NoVoter => f.write_str("this replica is no voter"),
        }
    }
}

/// Whether and when `situation.me` approves the event alone; `None` while it hears a leader.
pub fn outlook(state: &State, situation: &Situation, id: &EventId) -> Option<Outlook> {
    let alone = situation.alone.as_ref()?;
    let state = &alone.furthest(state);
    Some(match obstacle(state, situation, alone, id) {
        Some(obstacle) => Outlook::Not(obstacle),
        None => earliest(state, situation, alone, id),
    })
}

/// The event that `situation.me` approves alone now.
pub fn takeover<'a>(state: &State, situation: &'a Situation) -> Option<&'a Announcement> {
    let listed = situation.alone.as_ref()?.document.iter().flat_map(|document| &document.events);
    let is_due = |announced: &&Announcement| match outlook(state, situation, &announced.id) {
        Some(Outlook::From(at)) => at <= situation.now,
        Some(Outlook::Not(_)) | None => false,
    };
    listed.filter(|announced| announced.source == Source::User).find(is_due)
}

/// What stands between an event and its approval here, apart from time.
fn obstacle(state: &State, situation: &Situation, alone: &Alone, id: &EventId) -> Option<Obstacle> {
    let me = &situation.me;
    let Some(announced) = alone.listed(id).filter(|announced| announced.status == Status::Scheduled) else {
        return Some(Obstacle::NotScheduled);
    };
    if !alone.voters.contains(me) {
        return Some(Obstacle::NoVoter);
    }
    if announced.source != Source::User {
        return Some(Obstacle::NotUserInitiated);
    }
    let known = state.open_event(id);
    if known.is_some_and(Event::is_drill) {
        return Some(Obstacle::NotScheduled);
    }
    let mut tried = own(state, alone, me).filter(|(of, _)| *of == id);
    if known.is_some_and(Event::is_accepted) || tried.any(|(_, it)| it.outcome_is(&PostOutcome::Accepted)) {
        return Some(Obstacle::Approved);
    }
    if let Some(halted) = halted(state, known, alone) {
        return Some(halted);
    }
    let treatment = known.and_then(|event| event.treatment.clone()).unwrap_or_else(|| chosen(situation, announced));
    match treatment.action {
        Action::Observe => return Some(Obstacle::Observed),
        Action::Prepare if treatment.budget.is_none() => return Some(Obstacle::WithoutBudget),
        Action::Prepare | Action::Approve => {}
    }
    if known.is_some_and(|event| blocker::failed_for_good(state, event, situation.now).is_some()) {
        return Some(Obstacle::HookFailed);
    }
    if alone.is_one_of_many() && !alone.remembers {
        return Some(Obstacle::Forgetful);
    }
    if let Some(other) = other_event(state, situation, alone, announced) {
        return Some(Obstacle::OtherEvent(other));
    }
    let mut others = own(state, alone, me).filter(|(of, it)| *of != id && it.may_be_posted());
    if let Some((other, _)) = others.find(|(of, _)| alone.listed(of).is_some()) {
        return Some(Obstacle::OtherApproval(other.clone()));
    }
    if alone.journal.len() >= JOURNAL_LIMIT {
        return Some(Obstacle::JournalFull);
    }
    let led = alone.reached.iter().find(|(_, peer)| peer.leader.is_some());
    led.map(|(name, _)| Obstacle::LedElsewhere(name.clone()))
}

/// By the time of the log, which is never ahead of the cluster's: this replica sees no end before the others do.
fn halted(state: &State, known: Option<&Event>, alone: &Alone) -> Option<Obstacle> {
    let hold = known.and_then(|event| event.hold(alone.log_time)).map(Obstacle::Held);
    hold.or_else(|| state.pause(alone.log_time).map(Obstacle::Paused))
}

fn chosen(situation: &Situation, announced: &Announcement) -> policy::Treatment {
    policy::choose(&situation.policy, announced, &situation.members, situation.now)
}

/// What this replica did alone, by its journal and by its log.
fn own<'a>(state: &'a State, alone: &'a Alone, me: &'a VmName) -> impl Iterator<Item = (&'a EventId, &'a Takeover)> {
    let logged = state.open_events().flat_map(|event| event.takeovers.iter().map(|it| (&event.announcement.id, it)));
    let journaled = alone.journal.iter().map(|entry| (&entry.announcement.id, &entry.takeover));
    logged.filter(move |(_, takeover)| takeover.approver == *me).chain(journaled)
}

/// Another event that takes members of the same group: one that is listed, one that has yet to be put back as far as
/// the log tells, or one that a quorum elsewhere may have yet to put back. Of those that are no longer listed only
/// what takes another VM counts: a machine that is gone is not taken away once more.
fn other_event(state: &State, situation: &Situation, alone: &Alone, announced: &Announcement) -> Option<EventId> {
    let known = |vm: &&VmName| situation.members.contains(vm) || state.replicas.contains_key(vm);
    let ours = |vms: &[VmName]| -> Vec<VmName> { vms.iter().filter(known).cloned().collect() };
    let own = ours(&announced.resources);
    let is_near = |vms: &[VmName]| budget::share_a_group(state, &own, &ours(vms));
    let takes_more = |vms: &[VmName]| vms.iter().any(|vm| !announced.resources.contains(vm));
    let mut listed = alone.document.iter().flat_map(|document| &document.events);
    let listed = listed.find(|other| other.id != announced.id && is_near(&other.resources));
    let open = || {
        let unlisted = state.open_events().filter(|event| event.announcement.id != announced.id && !event.is_drill());
        unlisted.map(|event| (&event.announcement.id, taken_by(event))).find(|(_, vms)| is_near(vms) && takes_more(vms))
    };
    let gone = || {
        let elsewhere = alone.gone.iter().filter(|_| alone.is_one_of_many());
        elsewhere.map(|gone| (gone, &gone.resources)).find(|(_, vms)| is_near(vms) && takes_more(vms))
    };
    let listed = listed.map(|other| other.id.clone());
    listed.or_else(|| open().map(|(id, _)| id.clone())).or_else(|| gone().map(|(gone, _)| gone.id.clone()))
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
    let event = state.open_event(id);
    // What is past stays past: were it now, the grace after it would never be over.
    let in_log_time =
        |moment: Timestamp| situation.now.plus(moment.since(alone.log_time)).minus(alone.log_time.since(moment));
    if alone.is_one_of_many() {
        let treatment = event.and_then(|event| event.treatment.clone());
        let treatment = treatment.or_else(|| Some(chosen(situation, alone.listed(id)?)));
        let budget = treatment.and_then(|treatment| treatment.budget).unwrap_or_default();
        let committed = event.and_then(Event::budget_ends).map_or(seen, in_log_time);
        at = at.max(seen.plus(budget).max(committed).plus(timing.takeover_grace));
    }
    let running = event.into_iter().flat_map(|event| &event.attempts).filter(|attempt| attempt.outcome.is_none());
    let running_until = running.map(|attempt| in_log_time(attempt.deadline.plus(ENDED_WITHIN)));
    let tried: Vec<&Takeover> =
        own(state, alone, &situation.me).filter(|(of, _)| *of == id).map(|(_, it)| it).collect();
    let last = tried.iter().map(|it| it.outcome.as_ref().map_or(it.at, |(_, at)| *at)).max();
    let again = last.map(|last| last.plus(pause_after(tried.len())));
    Outlook::From(running_until.chain(again).fold(at.plus(wait_in_line(situation, alone, id)), Timestamp::max))
}

fn pause_after(tries: usize) -> Duration {
    let doublings = u32::try_from(tries.saturating_sub(1)).unwrap_or(u32::MAX).min(6);
    (AGAIN_AFTER * (1 << doublings)).min(AGAIN_AFTER_AT_MOST)
}

/// Those before it in the order of the configuration that could do it as well; and whoever is to go waits for
/// somebody who stays.
fn wait_in_line(situation: &Situation, alone: &Alone, id: &EventId) -> Duration {
    let before = alone.voters.iter().take_while(|name| **name != situation.me);
    let able = before.filter(|name| alone.reached.get(name).is_some_and(|peer| peer.is_healthy)).count();
    let is_affected = alone.listed(id).is_some_and(|announced| announced.resources.contains(&situation.me));
    NEXT_CANDIDATE_AFTER * u32::try_from(able + usize::from(is_affected)).unwrap_or(u32::MAX)
}
