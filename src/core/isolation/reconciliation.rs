//! The report by which a replica proves that the journal is in the log, and the state after this report.

use crate::apply::reconciliation::record;
use crate::apply::report;
use crate::model::command::{Command, ReconcileJournal};
use crate::model::document::{Announcement, Document};
use crate::model::id::{EventId, VmName};
use crate::model::isolated_approval::{IsolatedApproval, JournalEntry};
use crate::model::isolation::IsolatedView;
use crate::model::state::State;
use crate::model::time::Timestamp;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The state with the observations and approvals of an isolated replica merged, for display; no decision uses this
/// state.
pub fn with_local_facts(
    state: &State,
    me: &VmName,
    isolated: Option<&IsolatedView>,
    journal: &[JournalEntry],
) -> State {
    let mut told = state.clone();
    let untold = unrecorded(state, journal);
    let seen = isolated.and_then(|isolated| Some((isolated, listed(isolated.document.as_ref()?, state, &untold))));
    if let Some((isolated, document)) = &seen {
        let now = isolated.seen_since.values().copied().min().map_or(told.now, |seen| seen.max(told.now));
        show(&mut told, me, now, &as_approved(document, &untold));
    }
    for entry in &untold {
        told.now = told.now.max(entry.approval.at);
        record(&mut told, entry);
    }
    if let Some((_, document)) = seen.filter(|_| !untold.is_empty()) {
        let posted = untold.iter().filter_map(|entry| entry.approval.outcome.as_ref());
        let now = posted.map(|(_, at)| *at).fold(told.now, Timestamp::max);
        show(&mut told, me, now, &document);
    }
    let is_untold = |takeover: &IsolatedApproval| {
        untold.iter().any(|entry| entry.approval.approver == takeover.approver && entry.approval.at == takeover.at)
    };
    for event in told.open.values_mut().chain(&mut told.history) {
        if event.isolated_approvals.iter().any(is_untold) {
            let takeovers = Arc::make_mut(event).isolated_approvals.iter_mut();
            takeovers.filter(|takeover| is_untold(takeover)).for_each(|it| it.recorded = None);
        }
    }
    told
}

fn show(told: &mut State, me: &VmName, now: Timestamp, document: &Document) {
    told.now = now;
    let after = told.replicas.entry(me.clone()).or_default().reports;
    // No report came in between, so the report number fits.
    let _ = report::report_document(told, me, after, document);
}

/// The document with approved events no longer listed: only the log ends such an event, once the log has the approval.
pub(crate) fn listed(document: &Document, state: &State, journal: &[JournalEntry]) -> Document {
    let is_closed = |id: &EventId| state.open_event(id).is_none() && state.event(id).is_some();
    let approved = journal.iter().map(|entry| &entry.announcement);
    let missing = approved.filter(|announced| document.get(&announced.id).is_none() && !is_closed(&announced.id));
    Document::new(document.events.iter().chain(missing).cloned().collect())
}

/// The document as of the approvals: a start caused by an approval came after the approval.
fn as_approved(document: &Document, journal: &[JournalEntry]) -> Document {
    let of = |announced: &Announcement| journal.iter().find(|entry| entry.announcement.id == announced.id);
    let before = |announced| of(announced).map_or(announced, |entry| &entry.announcement).clone();
    Document::new(document.events.iter().map(before).collect())
}

/// Journal entries of one replica that the log lacks, or has without an outcome.
pub fn unrecorded(state: &State, journal: &[JournalEntry]) -> Vec<JournalEntry> {
    journal.iter().filter(|entry| is_unrecorded(state, entry)).cloned().collect()
}

/// Whether a journal keeps the entry: the outcome is unknown, or the log lacks the entry with the outcome.
pub fn is_entry_needed(state: &State, entry: &JournalEntry) -> bool {
    entry.approval.outcome.is_none() || is_unrecorded(state, entry)
}

fn is_unrecorded(state: &State, entry: &JournalEntry) -> bool {
    let of_event = state.events().filter(|event| event.announcement.id == entry.announcement.id);
    !of_event.flat_map(|event| &event.isolated_approvals).any(|known| {
        let is_same = known.approver == entry.approval.approver && known.at == entry.approval.at;
        is_same && known.outcome.is_some() >= entry.approval.outcome.is_some()
    })
}

/// A reconciliation number that is never assigned: a report under this number clears no replica.
const MORE_FOLLOWS: u64 = 0;

/// Journal entries per reconciliation report: one large announcement fits into a proposal, as in a document report.
const ENTRIES_AT_ONCE: usize = 1;

/// The pending reconciliation of approvals without a quorum. A suspect also sends an empty report, because the cluster
/// suspects a replica until a report arrives.
pub fn reconciliation_due(state: &State, me: &VmName, journal: &[JournalEntry]) -> Option<Command> {
    let suspicion = state.reconcile_states.get(me);
    let mut journal = unrecorded(state, journal);
    let is_owed = suspicion.is_some_and(|suspicion| !suspicion.is_reconciled) || !journal.is_empty();
    let is_all = journal.len() <= ENTRIES_AT_ONCE;
    journal.truncate(ENTRIES_AT_ONCE);
    let number = suspicion.filter(|_| is_all).map_or(MORE_FOLLOWS, |suspicion| suspicion.number);
    is_owed.then_some(Command::ReconcileJournal(ReconcileJournal { number, journal }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::claim::PostOutcome;
    use crate::model::document::Status;
    use crate::model::document::tests::announced;
    use crate::model::lifecycle::Stage;

    /// The stages shown for an event approved by this replica alone and listed as in `now`.
    fn shown(now: Document) -> Vec<(Stage, i64)> {
        let (me, announced) = (VmName::new("a"), announced("e1", Status::Scheduled));
        let mut state = State { now: Timestamp(10), ..State::default() };
        state.replicas.entry(me.clone()).or_default();
        report::report_document(&mut state, &me, 0, &Document::new([announced.clone()].into())).unwrap();
        let takeover = IsolatedApproval {
            approver: me.clone(),
            at: Timestamp(35),
            alone_since: Timestamp(20),
            out_of_reach: Vec::new(),
            requested_by: None,
            outcome: Some((PostOutcome::Accepted, Timestamp(36))),
            recorded: None,
        };
        let isolated = IsolatedView { document: Some(now), ..IsolatedView::default() };
        let told = with_local_facts(
            &state,
            &me,
            Some(&isolated),
            &[JournalEntry { announcement: announced, approval: takeover }],
        );
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
