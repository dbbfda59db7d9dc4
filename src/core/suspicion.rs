//! The part of `apply` that makes room for a replica that may be approving alone (`behaviour.md` 7): who leads, whom
//! the cluster is not sure of, and the accounts by which that ends.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::alone::Alone;
use super::apply::{Applied, open, registered};
use super::claim::PostOutcome;
use super::command::{Command, Ignored};
use super::document::{Announcement, Document};
use super::event::{Ending, Event};
use super::id::{EventId, VmName};
use super::lifecycle::Stage;
use super::sight::{self, enter};
use super::state::State;
use super::takeover::{JOURNAL_LIMIT, Journaled, Takeover};
use super::time::Timestamp;

/// The beginning of a leadership: of a term, or of a leader's finding its quorum again within it.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Leadership {
    pub by: VmName,
    pub term: u64,
    /// How often the leader has found a quorum within the term.
    pub turn: u64,
    pub voters: Vec<VmName>,
}

/// Whether a voter may be approving alone.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Suspicion {
    /// Every loss of contact and every beginning of a leadership starts a new one.
    pub number: u64,
    /// When this number was started.
    pub since: Timestamp,
    /// The voter has given its account under this number.
    pub is_cleared: bool,
}

impl State {
    /// The voters that may be approving alone.
    pub fn suspects(&self) -> impl Iterator<Item = &VmName> {
        self.suspicions.iter().filter(|(_, suspicion)| !suspicion.is_cleared).map(|(name, _)| name)
    }

    pub fn is_suspect(&self, replica: &VmName) -> bool {
        self.suspicions.get(replica).is_some_and(|suspicion| !suspicion.is_cleared)
    }

    /// One of a pair approves by itself where it does not hear the other one, and has yet to say what it did.
    pub fn is_pair_in_doubt(&self) -> bool {
        let voters = self.leadership.as_ref().map_or(&[][..], |leadership| &leadership.voters);
        voters.len() == 2 && voters.iter().any(|voter| self.is_suspect(voter))
    }

    fn start_number(&mut self, replica: &VmName) {
        let number = self.suspicions.get(replica).map_or(0, |known| known.number) + 1;
        let suspicion = Suspicion { number, since: self.now, is_cleared: false };
        self.suspicions.insert(replica.clone(), suspicion);
    }
}

/// A new leader cannot know who was alone before it led, itself included.
pub(super) fn lead(state: &mut State, by: &VmName, term: u64, turn: u64, voters: &[VmName]) -> Applied {
    if state.leadership.as_ref().is_some_and(|known| (known.term, known.turn) >= (term, turn)) {
        return Err(Ignored::OutOfOrder);
    }
    state.leadership = Some(Leadership { by: by.clone(), term, turn, voters: voters.into() });
    for voter in voters {
        state.start_number(voter);
    }
    Ok(())
}

/// Also of one that is suspect already: an account that it gave before it fell silent again says nothing of the time
/// since.
pub(super) fn suspect(state: &mut State, replica: &VmName, number: u64) -> Applied {
    if number != state.suspicions.get(replica).map_or(0, |known| known.number) + 1 {
        return Err(Ignored::OutOfOrder);
    }
    state.start_number(replica);
    Ok(())
}

/// Whoever still votes is suspected again by the next leader.
pub(super) fn absolve(state: &mut State, replica: &VmName) -> Applied {
    state.suspicions.remove(replica).map(drop).ok_or(Ignored::UnknownReplica)
}

/// What a replica did alone is recorded whatever its number; only an account of the current one clears it.
pub(super) fn account(state: &mut State, by: &VmName, number: u64, journal: &[Journaled]) -> Applied {
    if journal.len() > JOURNAL_LIMIT || journal.iter().any(|entry| entry.takeover.approver != *by) {
        return Err(Ignored::NotYours);
    }
    let mut is_news = false;
    for entry in journal {
        is_news |= record(state, entry);
    }
    if let Some(suspicion) = state.suspicions.get_mut(by)
        && suspicion.number == number
        && !suspicion.is_cleared
    {
        suspicion.is_cleared = true;
        is_news = true;
    }
    if is_news { Ok(()) } else { Err(Ignored::Repeated) }
}

/// Takes one entry of a journal over; false when all of it is known.
pub(super) fn record(state: &mut State, entry: &Journaled) -> bool {
    let now = state.now;
    let Journaled { announcement, takeover } = entry;
    let id = &announcement.id;
    if state.open_event(id).is_some_and(Event::is_drill) {
        return false;
    }
    if let Ok(event) = open(state, id) {
        return merge(event, takeover, now);
    }
    // An event that seemed to be cancelled may have ended because of this approval, or have come back before it.
    let is_back = |event: &Event| event.may_come_back() && event.over_at().is_some_and(|over| takeover.at > over);
    let mut closed = state.history.iter_mut().rev();
    if let Some(event) = closed.find(|event| event.announcement.id == *id && !event.is_drill() && !is_back(event)) {
        return merge(Arc::make_mut(event), takeover, now);
    }
    let new = || Event::first_seen_as(announcement.clone(), takeover.approver.clone(), now).into();
    let mut event = sight::reopened(state, id).unwrap_or_else(new);
    let changed = Arc::make_mut(&mut event);
    sight::return_to_come(changed, now);
    merge(changed, takeover, now);
    state.open.insert(id.clone(), event);
    // It has listed the event, so its next report says whether it still does. One that is on its way may be from before
    // the announcement, and must not end it.
    if let Ok(replica) = registered(state, &takeover.approver) {
        replica.reports += 1;
        let mut listed = replica.document.take().unwrap_or_default().events;
        listed.push(announcement.clone());
        replica.document = Some(Document::new(listed));
    }
    true
}

fn merge(event: &mut Event, takeover: &Takeover, now: Timestamp) -> bool {
    let is_settled = event.may_have_happened();
    let same = |known: &&mut Takeover| known.approver == takeover.approver && known.at == takeover.at;
    match event.takeovers.iter_mut().find(same) {
        Some(known) if known.outcome.is_some() || takeover.outcome.is_none() => return false,
        Some(known) => known.outcome.clone_from(&takeover.outcome),
        None => event.takeovers.push(Takeover { recorded: Some(now), ..takeover.clone() }),
    }
    event.revision += 1;
    // One whose end is not known yet counts by itself, and may turn out not to have been sent.
    if takeover.outcome.is_some() && takeover.may_be_posted() {
        enter(event, Stage::Claimed, now);
    }
    if takeover.outcome_is(&PostOutcome::Accepted) {
        enter(event, Stage::Approved, now);
    }
    if event.ending == Some(Ending::Cancelled) && !is_settled && event.may_have_happened() {
        event.ending = Some(Ending::Completed);
    }
    true
}

/// What the log would say if it knew what a replica saw and did while it was alone. For people; nothing is decided by it.
pub fn as_if_told(state: &State, me: &VmName, alone: Option<&Alone>, journal: &[Journaled]) -> State {
    let mut told = state.clone();
    let untold = unrecorded(state, journal);
    let seen = alone.and_then(|alone| Some((alone, listed(alone.document.as_ref()?, state, &untold))));
    if let Some((alone, document)) = &seen {
        let now = alone.seen_since.values().copied().min().map_or(told.now, |seen| seen.max(told.now));
        show(&mut told, me, now, &as_approved(document, &untold));
    }
    for entry in &untold {
        told.now = told.now.max(entry.takeover.at);
        record(&mut told, entry);
    }
    if let Some((_, document)) = seen.filter(|_| !untold.is_empty()) {
        let posted = untold.iter().filter_map(|entry| entry.takeover.outcome.as_ref());
        let now = posted.map(|(_, at)| *at).fold(told.now, Timestamp::max);
        show(&mut told, me, now, &document);
    }
    let is_untold = |takeover: &Takeover| {
        untold.iter().any(|entry| entry.takeover.approver == takeover.approver && entry.takeover.at == takeover.at)
    };
    for event in told.open.values_mut().chain(&mut told.history) {
        if event.takeovers.iter().any(is_untold) {
            let takeovers = Arc::make_mut(event).takeovers.iter_mut();
            takeovers.filter(|takeover| is_untold(takeover)).for_each(|it| it.recorded = None);
        }
    }
    told
}

fn show(told: &mut State, me: &VmName, now: Timestamp, document: &Document) {
    told.now = now;
    let after = told.replicas.entry(me.clone()).or_default().reports;
    // It fits: nothing was reported in between.
    let _ = sight::report(told, me, after, document);
}

/// With what was approved and is not listed any more: that it is over is for the log to say, once it knows of it.
fn listed(document: &Document, state: &State, journal: &[Journaled]) -> Document {
    let is_closed = |id: &EventId| state.open_event(id).is_none() && state.event(id).is_some();
    let approved = journal.iter().map(|entry| &entry.announcement);
    let missing = approved.filter(|announced| document.get(&announced.id).is_none() && !is_closed(&announced.id));
    Document::new(document.events.iter().chain(missing).cloned().collect())
}

/// As it was when its events were approved: what started because of that started afterwards.
fn as_approved(document: &Document, journal: &[Journaled]) -> Document {
    let of = |announced: &Announcement| journal.iter().find(|entry| entry.announcement.id == announced.id);
    let before = |announced| of(announced).map_or(announced, |entry| &entry.announcement).clone();
    Document::new(document.events.iter().map(before).collect())
}

/// The takeovers of one replica that the log does not know yet, or not as they ended.
pub fn unrecorded(state: &State, journal: &[Journaled]) -> Vec<Journaled> {
    let is_known = |entry: &&Journaled| {
        let of_event = |event: &&Event| event.announcement.id == entry.announcement.id;
        let known = state.events().filter(of_event).flat_map(|event| &event.takeovers);
        known.into_iter().any(|known| {
            let same = known.approver == entry.takeover.approver && known.at == entry.takeover.at;
            same && known.outcome.is_some() >= entry.takeover.outcome.is_some()
        })
    };
    journal.iter().filter(|entry| !is_known(entry)).cloned().collect()
}

/// Under a number that there never is, an account clears nobody.
const MORE_FOLLOWS: u64 = 0;
/// Entries of the journal in one account: like a report, one large announcement fits into a proposal.
const ENTRIES_AT_ONCE: usize = 1;

/// What a replica owes the log of what it did without a quorum; also where there is nothing to tell, because the
/// cluster is not sure of it until it has.
pub fn account_due(state: &State, me: &VmName, journal: &[Journaled]) -> Option<Command> {
    let suspicion = state.suspicions.get(me);
    let mut journal = unrecorded(state, journal);
    let is_owed = suspicion.is_some_and(|suspicion| !suspicion.is_cleared) || !journal.is_empty();
    let is_all = journal.len() <= ENTRIES_AT_ONCE;
    journal.truncate(ENTRIES_AT_ONCE);
    let number = suspicion.filter(|_| is_all).map_or(MORE_FOLLOWS, |suspicion| suspicion.number);
    is_owed.then_some(Command::Account { number, journal })
}

#[cfg(test)]
mod tests {
    use super::super::document::Status;
    use super::super::document::tests::announced;
    use super::*;

    /// What is shown of an event that this replica approved alone, which its document shows so now.
    fn shown(now: Document) -> Vec<(Stage, i64)> {
        let (me, announced) = (VmName::new("a"), announced("e1", Status::Scheduled));
        let mut state = State { now: Timestamp(10), ..State::default() };
        state.replicas.entry(me.clone()).or_default();
        sight::report(&mut state, &me, 0, &Document::new([announced.clone()].into())).unwrap();
        let takeover = Takeover {
            approver: me.clone(),
            at: Timestamp(35),
            alone_since: Timestamp(20),
            out_of_reach: Vec::new(),
            requested_by: None,
            outcome: Some((PostOutcome::Accepted, Timestamp(36))),
            recorded: None,
        };
        let alone = Alone { document: Some(now), ..Alone::default() };
        let told = as_if_told(&state, &me, Some(&alone), &[Journaled { announcement: announced, takeover }]);
        let mut events = told.events();
        let event = events.next().unwrap();
        assert!(events.next().is_none());
        event.entered.iter().map(|(stage, Timestamp(at))| (*stage, *at)).collect()
    }

    #[test]
    fn what_was_approved_alone_is_shown_to_have_started_after_that_and_to_be_over_by_the_log_alone() {
        let approved = [(Stage::Announced, 10), (Stage::Claimed, 35), (Stage::Approved, 35)];
        let started = shown(Document::new([announced("e1", Status::Started)].into()));
        assert_eq!(started, [&approved[..], &[(Stage::Started, 36)]].concat());
        assert_eq!(shown(Document::default()), approved);
    }
}
