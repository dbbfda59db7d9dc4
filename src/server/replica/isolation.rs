//! Detects the isolation of this replica, and approves by the core's procedure: automatically as one of a pair, or at
//! an operator's request.

use std::collections::BTreeMap;
use std::time::Duration;

use super::clock;
use super::host::ReplicaHost;
use super::metrics::TakeoverLevel;
use super::watchdog::Loop;
use allclear_core::isolation::watch::IsolationWatch;
use allclear_core::model::claim::PostOutcome;
use allclear_core::model::command::Entry;
use allclear_core::model::id::{VmName, WorkloadName};
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::isolation::PeerAnswer;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Readiness;
use allclear_core::planning_input::PlanningInput;
use allclear_core::procedure::isolated_approval::{
    AGAIN_AFTER, IsolatedHost, NotApproved, approve_isolated, isolated_view,
};
use allclear_wire::log;

const TICK: Duration = Duration::from_millis(250);
/// The tick while a leader is heard: only new documents matter then.
const IDLE_TICK: Duration = Duration::from_millis(500);

impl IsolatedHost for ReplicaHost {
    fn has_quorum(&self) -> bool {
        self.cluster.consensus.status_now().quorum
    }

    fn last_leader_contact(&self) -> Option<Timestamp> {
        self.cluster.consensus.last_contact().map(clock::to_monotonic)
    }

    fn voters(&self) -> Vec<VmName> {
        let cluster = &self.cluster;
        if !cluster.consensus.is_member() {
            return Vec::new();
        }
        let voters: Vec<VmName> = cluster.consensus.members().voters.iter().map(|name| VmName::new(name)).collect();
        let configured = cluster.node.configured.iter().filter(|name| voters.contains(name));
        let others = voters.iter().filter(|name| !cluster.node.configured.contains(name));
        configured.chain(others).cloned().collect()
    }

    fn peer_answers(&self) -> BTreeMap<VmName, PeerAnswer> {
        self.inputs.peers.recent_answers()
    }

    fn readiness(&self) -> BTreeMap<WorkloadName, Readiness> {
        self.readiness.all()
    }

    fn log_time(&self) -> Timestamp {
        self.cluster.time.of_the_log()
    }

    fn journal(&self) -> Vec<JournalEntry> {
        self.journal.entries().as_ref().clone()
    }

    async fn unapplied_entries(&self) -> Option<Vec<Entry>> {
        let entries = match self.cluster.consensus.unapplied_entries().await {
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
        self.inputs.planning_input()
    }

    async fn fence(&self) -> bool {
        matches!(self.cluster.consensus.fence().await, Ok(true))
    }

    async fn begin_journal_entry(
        &self,
        entry: JournalEntry,
        _input: &PlanningInput,
        is_still_allowed: impl Fn() -> bool,
    ) -> Result<bool, String> {
        let event = entry.announcement.id.clone();
        let requested_by = entry.approval.requested_by.as_ref().map(|requested_by| requested_by.who.clone());
        let begun = self.journal.begin(entry, is_still_allowed).await.map_err(|error| {
            self.metrics.journal_failed();
            error.to_string()
        })?;
        if begun {
            self.metrics.takeover(TakeoverLevel::Alone);
            tracing::warn!(%event, requested_by, "isolated approval begun");
        }
        Ok(begun)
    }

    async fn end_journal_entry(&self, begun: &JournalEntry, outcome: &PostOutcome) {
        let (cluster, event, approval) = (&self.cluster, &begun.announcement.id, &begun.approval);
        tracing::warn!(%event, outcome = outcome.as_str(), "isolated approval ended");
        let seen = self.inputs.isolated.borrow().as_ref().and_then(|view| view.seen_since.get(event).copied());
        self.metrics.approval(approval.reason(), outcome, seen.map(|seen| cluster.time.now().since(seen)));
        if let Err(error) = self.journal.end(approval, outcome.clone(), cluster.time.now()).await {
            self.metrics.journal_failed();
            tracing::error!(%error, %event, "outcome of the isolated approval not written");
        }
    }
}

pub(super) async fn run(host: ReplicaHost) {
    let mut watch = IsolationWatch::new(clock::monotonic());
    let mut not_before = watch.last_tick;
    let cluster = &host.cluster;
    let (mut status, mut polls) = (cluster.consensus.status(), host.observer.polls());
    let mut is_led = true;
    loop {
        let wait = host.watchdog.until_turn(if is_led { IDLE_TICK } else { TICK });
        host.watchdog.arm(Loop::Alone, wait);
        let request = tokio::select! {
            () = tokio::time::sleep(wait) => None,
            _ = polls.changed() => None,
            _ = status.wait_for(|status| !status.quorum), if is_led => None,
            request = host.isolated_requests.next() => Some(request),
            () = host.stop.cancelled() => return,
        };
        let view = isolated_view(&host, &mut watch).await;
        is_led = host.has_quorum();
        let is_isolated = view.is_some();
        host.inputs.isolated.send_replace(view);
        let input = is_isolated.then(|| host.inputs.planning_input());
        let is_due = input.as_ref().is_some_and(|input| host.event_to_approve(input).is_some());
        let may_try_again = clock::monotonic() >= not_before;
        // An approval runs to the end, also when the replica stops: the journal gets the outcome of the post.
        match (request, input) {
            (Some(request), None) if is_led => request.answer(Err(NotApproved::Led)),
            (Some(request), None) => {
                request.answer(Err(NotApproved::Failed("the end of the log cannot be read".into())));
            }
            (Some(request), Some(input)) => {
                let approved = approve_isolated(&host, input, Some(&request.request)).await;
                request.answer(approved);
            }
            (None, Some(input)) if is_due && may_try_again => {
                if let Err(why) = approve_isolated(&host, input, None).await {
                    tracing::warn!(%why, "isolated approval failed");
                }
                not_before = clock::monotonic().plus(AGAIN_AFTER);
            }
            (None, _) => continue,
        }
        watch.last_tick = clock::monotonic();
    }
}
