//! The simulated machine as the host of the core's procedures, and the deliberate faults in it.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use super::{ModelContext, approve, hooks};
use crate::raft_model::Chain;
use crate::tasks::{Signal, SignalChanges};
use allclear_core::model::attempt::Attempt;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::{Command, Entry};
use allclear_core::model::document::Document;
use allclear_core::model::event::Event;
use allclear_core::model::id::{EventId, VmName, WorkloadName};
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::isolation::PeerAnswer;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Readiness;
use allclear_core::planning_input::{PlanningInput, Timing};
use allclear_core::procedure::approval::{ApprovalHost, OwnClaim};
use allclear_core::procedure::executor::{AssignedAttempt, ExecutorHost};
use allclear_core::procedure::isolated_approval::IsolatedHost;
use allclear_core::procedure::reconciliation::JournalHost;
use allclear_core::procedure::{Host, PostReason};
use allclear_core::schedule::claims;

use crate::scenario::TriggerPoint;

/// The pause before a reader checks again whether the journal is being written.
const TURN_AGAIN_AFTER: Duration = Duration::from_millis(5);

impl Host for ModelContext {
    type State = Rc<State>;

    fn name(&self) -> &VmName {
        self.name()
    }

    fn state(&self) -> Rc<State> {
        self.state()
    }

    fn timing(&self) -> &Timing {
        &self.world.scenario.timing
    }

    fn monotonic(&self) -> Timestamp {
        self.steady()
    }

    fn cluster_time(&self) -> Timestamp {
        self.time()
    }

    async fn sleep(&self, duration: Duration) {
        self.sleep(duration).await;
    }

    async fn fresh_document(&self) -> Result<Document, String> {
        if makes!(self.world.mutation, DocumentNotFresh) {
            return self.believed().ok_or_else(|| "no document".into());
        }
        self.look().await.map_err(|_| "no fresh document".into())
    }

    fn trusted_document(&self) -> Option<Document> {
        self.believed()
    }

    async fn ensure_linearizable(&self) -> bool {
        self.confirm().await.is_ok()
    }

    async fn post(&self, event: &EventId, reason: PostReason, _within: Duration) -> PostOutcome {
        self.post_approval(event, reason).await
    }
}

impl ApprovalHost for ModelContext {
    async fn ensure_state_is_current(&self) -> bool {
        self.world.come(&self.world.counts.confirmed, TriggerPoint::Confirm);
        makes!(self.world.mutation, PostUnconfirmed) || self.ensure_linearizable().await
    }

    fn reason_not_to_post(&self, claim: &OwnClaim, fresh: &Document) -> Option<PostOutcome> {
        let withdrawn = claims::outcome_without_post(&self.state(), self.name(), &claim.event, claim.attempt, fresh);
        withdrawn.filter(|outcome| !makes!(self.world.mutation, DecisionUnchecked) || *outcome != PostOutcome::Differs)
    }
}

impl ExecutorHost for ModelContext {
    fn knows_attempt(&self, event: &Event, attempt: &Attempt) -> bool {
        hooks::knows(self, event, attempt)
    }

    fn drive_attempt(&self, assigned: AssignedAttempt<'_>) {
        hooks::drive_attempt(self, assigned);
    }

    fn stop_attempt(&self, assigned: AssignedAttempt<'_>) {
        hooks::stop(self, assigned);
    }

    fn begin_approval(&self, mut claim: OwnClaim) {
        if makes!(self.world.mutation, LeaseUnchecked) {
            claim.lease = Duration::MAX;
        }
        self.world.tasks.spawn(self.me, approve::run(self.clone(), claim));
    }

    fn cleanup(&self, state: &State) -> bool {
        hooks::cleanup(self, state)
    }

    fn complete_disk(&self) {
        self.world.nodes[self.me].is_new.set(false);
    }
}

impl IsolatedHost for ModelContext {
    fn has_quorum(&self) -> bool {
        self.status().quorum
    }

    fn last_leader_contact(&self) -> Option<Timestamp> {
        self.world.last_contact(self.me)
    }

    fn voters(&self) -> Vec<VmName> {
        if self.takes_part() { self.voters() } else { Vec::new() }
    }

    fn peer_answers(&self) -> BTreeMap<VmName, PeerAnswer> {
        self.process.contacts.borrow().recent_answers(self.steady())
    }

    fn readiness(&self) -> BTreeMap<WorkloadName, Readiness> {
        BTreeMap::new()
    }

    fn log_time(&self) -> Timestamp {
        self.process.time.borrow().of_the_log(self.clocks())
    }

    fn journal(&self) -> Vec<JournalEntry> {
        self.world.nodes[self.me].journal.borrow().clone()
    }

    async fn unapplied_entries(&self) -> Option<Vec<Entry>> {
        let node = &self.world.nodes[self.me];
        Some(Chain::tail(node.kept.borrow().behind(node.agreement.borrow().applied)))
    }

    fn planning_input(&self) -> PlanningInput {
        self.planning_input()
    }

    fn event_to_approve(&self, input: &PlanningInput) -> Option<EventId> {
        self.world.mutation.takeover(&self.state(), input)
    }

    async fn fence(&self) -> bool {
        if !self.world.fence(self.me) {
            return std::future::pending().await;
        }
        self.sleep(self.world.disk_time(self.me)).await;
        true
    }

    async fn begin_journal_entry(
        &self,
        entry: JournalEntry,
        input: &PlanningInput,
        is_still_allowed: impl Fn() -> bool,
    ) -> Result<bool, String> {
        self.journal_turn().await;
        if !is_still_allowed() {
            return Ok(false);
        }
        let announced = entry.announcement.clone();
        if !makes!(self.world.mutation, JournalSkipped) {
            self.write_journal(|journal| journal.push(entry)).await;
        }
        self.world.judge_alone(self.me, &announced, input);
        Ok(true)
    }

    async fn end_journal_entry(&self, begun: &JournalEntry, outcome: &PostOutcome) {
        let end = Some((outcome.clone(), self.time()));
        self.write_journal(|journal| {
            for entry in journal.iter_mut().filter(|entry| entry.approval == begun.approval) {
                entry.approval.outcome.clone_from(&end);
            }
        })
        .await;
    }
}

impl JournalHost for ModelContext {
    /// The versions of [`ModelContext::journal_signals`].
    type Changes = [u64; 3];

    fn changes(&self) -> [u64; 3] {
        SignalChanges::of(self.journal_signals()).versions()
    }

    async fn wait(&self, seen: [u64; 3], at_most: Option<Duration>) {
        self.wait(SignalChanges::since(self.journal_signals(), seen), at_most).await;
    }

    fn may_reconcile(&self) -> bool {
        self.status().quorum
    }

    fn document_age(&self) -> Option<Duration> {
        self.health().document_age
    }

    fn has_former_vote(&self) -> bool {
        false
    }

    fn is_journal_new(&self) -> bool {
        self.world.nodes[self.me].has_new_journal.get()
    }

    async fn keep_journal(&self) {
        self.world.nodes[self.me].has_new_journal.set(false);
    }

    fn is_known(&self) -> Option<bool> {
        self.process.is_known.get()
    }

    async fn prune_journal(&self, is_needed: impl Fn(&JournalEntry) -> bool) {
        if !self.process.has_turn.get() {
            self.world.nodes[self.me].journal.borrow_mut().retain(is_needed);
        }
    }

    async fn read_journal<T>(&self, read: impl FnOnce(&[JournalEntry]) -> T) -> T {
        self.journal_turn().await;
        read(&self.world.nodes[self.me].journal.borrow())
    }

    async fn propose(&self, command: &Command) {
        if !makes!(self.world.mutation, NoAccount) {
            drop(self.propose(command).await);
        }
    }
}

impl ModelContext {
    fn journal_signals(&self) -> [&Signal; 3] {
        let signals = &self.process.signals;
        [&signals.changed, &signals.journaled, &signals.status]
    }

    /// Waits until no task writes to the journal.
    async fn journal_turn(&self) {
        while self.process.has_turn.get() {
            self.sleep(TURN_AGAIN_AFTER).await;
        }
    }

    /// The change is on the disk on return. A process whose disk fails never returns.
    async fn write_journal(&self, change: impl FnOnce(&mut Vec<JournalEntry>)) {
        self.process.has_turn.set(true);
        self.sleep(self.world.disk_time(self.me)).await;
        if !self.world.write_beside(self.me, |node| change(&mut node.journal.borrow_mut())) {
            std::future::pending::<()>().await;
        }
        self.process.has_turn.set(false);
        self.process.signals.journaled.tell(&self.world.tasks);
    }
}
