//! The host of the core's procedures: this process beside a database.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::approve;
use super::clock;
use super::context::Context;
use super::hook_executor::HookExecutor;
use super::metrics::TakeoverLevel;
use super::poller::Observer;
use crate::consensus::RaftStatus;
use crate::imds::Approval;
use allclear_core::model::attempt::Attempt;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::{Command, Entry, bounded};
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
use allclear_core::procedure::assignments::{AssignedAttempt, ExecutorHost, LeftOver};
use allclear_core::procedure::isolation::IsolatedHost;
use allclear_core::procedure::reconciliation::JournalHost;
use allclear_core::procedure::{Host, PostReason};
use allclear_wire::log;

#[derive(Clone)]
pub(super) struct ReplicaHost {
    pub(super) context: Arc<Context>,
    pub(super) hooks: Arc<HookExecutor>,
    pub(super) observer: Arc<Observer>,
    /// Approvals under way.
    pub(super) approvals: TaskTracker,
    /// What a previous run left over; `None` until this run has caught up.
    pub(super) left_over: watch::Receiver<Option<LeftOver>>,
    pub(super) stop: CancellationToken,
}

impl Host for ReplicaHost {
    type State = Arc<State>;

    fn name(&self) -> &VmName {
        &self.context.name
    }

    fn state(&self) -> Arc<State> {
        self.context.state()
    }

    fn timing(&self) -> &Timing {
        &self.context.timing
    }

    fn monotonic(&self) -> Timestamp {
        clock::monotonic()
    }

    fn cluster_time(&self) -> Timestamp {
        self.context.time.now()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }

    async fn fresh_document(&self) -> Result<Document, String> {
        let state = self.context.state();
        let fetched = self.stop.run_until_cancelled(self.observer.fetch_now(&state)).await;
        let fetched = fetched.ok_or_else(|| "this replica stops".to_owned())?;
        fetched.map_err(|why| why.to_string())
    }

    fn trusted_document(&self) -> Option<Document> {
        self.observer.trusted_document()
    }

    async fn ensure_linearizable(&self) -> bool {
        self.context.consensus.ensure_linearizable().await.is_ok()
    }

    async fn post(&self, event: &EventId, _reason: PostReason) -> PostOutcome {
        match self.observer.approve(event).await {
            Approval::Accepted => PostOutcome::Accepted,
            Approval::Refused(status) => PostOutcome::Refused(status),
            Approval::NotSent(why) => PostOutcome::NotSent(bounded(&why.to_string())),
            Approval::Unknown(why) => PostOutcome::Unknown(bounded(&why.to_string())),
        }
    }
}

impl ApprovalHost for ReplicaHost {}

impl ExecutorHost for ReplicaHost {
    fn knows_attempt(&self, event: &Event, attempt: &Attempt) -> bool {
        self.hooks.knows(event, attempt)
    }

    fn reconcile_attempt(&self, assigned: AssignedAttempt<'_>) {
        self.hooks.reconcile_attempt(&self.context, assigned);
    }

    fn stop_attempt(&self, assigned: AssignedAttempt<'_>) {
        self.hooks.stop(&self.context, assigned);
    }

    fn begin_approval(&self, claim: OwnClaim) {
        self.approvals.spawn(approve::run(self.clone(), claim));
    }

    fn cleanup(&self, state: &State) -> bool {
        self.hooks.cleanup(&self.context, state)
    }

    fn complete_disk(&self) {
        self.hooks.front.commands.memory.complete();
    }
}

impl IsolatedHost for ReplicaHost {
    fn has_quorum(&self) -> bool {
        self.context.consensus.status_now().quorum
    }

    fn last_leader_contact(&self) -> Option<Timestamp> {
        self.context.consensus.last_contact().map(clock::to_monotonic)
    }

    fn voters(&self) -> Vec<VmName> {
        let context = &self.context;
        if !context.consensus.is_member() {
            return Vec::new();
        }
        let voters: Vec<VmName> = context.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
        let configured = context.configured.iter().filter(|name| voters.contains(name));
        let others = voters.iter().filter(|name| !context.configured.contains(name));
        configured.chain(others).cloned().collect()
    }

    fn peer_answers(&self) -> BTreeMap<VmName, PeerAnswer> {
        self.context.contacts.peers()
    }

    fn readiness(&self) -> BTreeMap<WorkloadName, Readiness> {
        self.context.readiness.all()
    }

    fn log_time(&self) -> Timestamp {
        self.context.time.of_the_log()
    }

    fn journal(&self) -> Vec<JournalEntry> {
        self.context.journal.entries().as_ref().clone()
    }

    async fn unapplied_entries(&self) -> Option<Vec<Entry>> {
        let entries = match self.context.consensus.unapplied_entries().await {
            Ok(entries) => entries,
            Err(error) => {
                tracing::warn!(%error, "end of the log not readable, isolated approval withheld");
                return None;
            }
        };
        let decoded: Result<Vec<Entry>, _> = entries.iter().map(|entry| log::decode_entry(entry)).collect();
        decoded
            .inspect_err(|error| tracing::warn!(%error, "end of the log not decoded, isolated approval withheld"))
            .ok()
    }

    fn planning_input(&self) -> PlanningInput {
        self.context.planning_input()
    }

    async fn fence(&self) -> bool {
        matches!(self.context.consensus.fence().await, Ok(true))
    }

    async fn begin_journal_entry(
        &self,
        entry: JournalEntry,
        _input: &PlanningInput,
        is_still_allowed: impl Fn() -> bool,
    ) -> Result<bool, String> {
        let event = entry.announcement.id.clone();
        let requested_by = entry.takeover.requested_by.as_ref().map(|requested_by| requested_by.who.clone());
        let begun = self.context.journal.begin(entry, is_still_allowed).await.map_err(|error| {
            self.context.metrics.journal_failed();
            error.to_string()
        })?;
        if begun {
            self.context.metrics.takeover(TakeoverLevel::Alone);
            tracing::warn!(%event, requested_by, "isolated approval begun");
        }
        Ok(begun)
    }

    async fn end_journal_entry(&self, begun: &JournalEntry, outcome: &PostOutcome) {
        let (context, event, approval) = (&self.context, &begun.announcement.id, &begun.takeover);
        tracing::warn!(%event, outcome = outcome.as_word(), "isolated approval ended");
        let seen = context.alone.borrow().as_ref().and_then(|view| view.seen_since.get(event).copied());
        context.metrics.approval(approval.reason(), outcome, seen.map(|seen| context.time.now().since(seen)));
        if let Err(error) = context.journal.end(approval, outcome.clone(), context.time.now()).await {
            context.metrics.journal_failed();
            tracing::error!(%error, %event, "outcome of the isolated approval not written");
        }
    }
}

/// What a reconciliation has seen when it began to wait.
pub(super) struct JournalChanges {
    state: watch::Receiver<Arc<State>>,
    journal: watch::Receiver<Arc<Vec<JournalEntry>>>,
    status: watch::Receiver<RaftStatus>,
    had_quorum: bool,
}

impl JournalHost for ReplicaHost {
    type Changes = JournalChanges;

    fn changes(&self) -> JournalChanges {
        let (mut state, mut journal) = (self.context.state.clone(), self.context.journal.changes());
        state.mark_unchanged();
        journal.mark_unchanged();
        let mut status = self.context.consensus.status();
        let had_quorum = status.borrow_and_update().quorum;
        JournalChanges { state, journal, status, had_quorum }
    }

    async fn wait(&self, changes: JournalChanges, at_most: Option<Duration>) {
        let JournalChanges { mut state, mut journal, mut status, had_quorum } = changes;
        tokio::select! {
            _ = state.changed() => {}
            _ = journal.changed() => {}
            _ = status.wait_for(|status| status.quorum != had_quorum) => {}
            () = tokio::time::sleep(at_most.unwrap_or_default()), if at_most.is_some() => {}
        }
    }

    fn may_reconcile(&self) -> bool {
        self.context.consensus.status().borrow().quorum
    }

    fn document_age(&self) -> Option<Duration> {
        self.observer.health().document_age
    }

    fn has_former_vote(&self) -> bool {
        self.context.consensus.is_left_behind()
    }

    fn is_journal_new(&self) -> bool {
        self.context.journal.is_new()
    }

    async fn keep_journal(&self) {
        while let Err(error) = self.context.journal.keep().await {
            tracing::error!(%error, "journal not written");
            tokio::time::sleep(WRITE_AGAIN_AFTER).await;
        }
        tracing::info!("journal of a new disk kept");
    }

    fn is_known(&self) -> Option<bool> {
        self.left_over.borrow().map(|left_over| left_over.is_known)
    }

    async fn prune_journal(&self, is_needed: impl Fn(&JournalEntry) -> bool) {
        if let Err(error) = self.context.journal.prune(is_needed).await {
            tracing::error!(%error, "journal not written");
        }
    }

    async fn read_journal<T>(&self, read: impl FnOnce(&[JournalEntry]) -> T) -> T {
        let _turn = self.context.journal.turn().await;
        read(&self.context.journal.entries())
    }

    async fn propose(&self, command: &Command) {
        match self.context.propose(command).await {
            Ok(result) => tracing::debug!(?result, "journal reconciled"),
            Err(error) => tracing::debug!(%error, "journal not reconciled yet"),
        }
    }
}

const WRITE_AGAIN_AFTER: Duration = Duration::from_millis(100);
