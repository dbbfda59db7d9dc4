//! The view of a replica on the cluster. Status socket, status JSON and commands read nothing else.

pub mod advice;
mod answering;
pub mod blocker;
mod changes;
mod drill;
mod event;
mod group;
mod member;
mod operator_record;
mod page;
mod post_detail;
mod primary;
mod replica;
mod timeline;
pub mod warning;
mod workload;

use std::sync::Arc;
use std::time::Duration;

pub use self::changes::Changes;
pub use self::event::{hook_label, status};
pub use self::member::state_word;
pub use self::page::PageStart;
pub use self::post_detail::detail;
pub use self::primary::primaries;
use super::SharedParts;
use super::clock::{self, rfc3339};
use super::clock_skew::WARN_ABOVE;
use super::cluster::ClusterHandle;
use super::input_source::InputSource;
use super::journal::ApprovalJournal;
use super::latest_answers::{LatestFaults, LatestRoles};
use super::metrics::Metrics;
use super::watchdog::Watchdog;
use crate::consensus::{RaftRole, RaftStatus};
use crate::net::tls::Credentials;
use allclear_core::cluster_time::Trust;
use allclear_core::isolation::reconciliation::with_local_facts;
use allclear_core::model::event::Event;
use allclear_core::model::event_lookup::NotSelected;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::isolation::ImdsHealth;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::planning_input::PlanningInput;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The number of closed events in a list of events.
const RECENT: usize = 100;

#[derive(Clone)]
pub struct View {
    cluster: Arc<ClusterHandle>,
    inputs: Arc<InputSource>,
    journal: Arc<ApprovalJournal>,
    metrics: Arc<Metrics>,
    watchdog: Arc<Watchdog>,
    roles: Arc<LatestRoles>,
    checks: Arc<LatestFaults>,
    unknown_roles: Arc<LatestFaults>,
    unready: Arc<LatestFaults>,
    first_shown: Arc<warning::FirstShown>,
}

impl View {
    pub fn new(shared: &SharedParts) -> Self {
        let SharedParts { inputs, journal, metrics, watchdog, roles, checks, unknown_roles, unready, .. } =
            shared.clone();
        Self {
            cluster: inputs.cluster.clone(),
            inputs,
            journal,
            metrics,
            watchdog,
            roles,
            checks,
            unknown_roles,
            unready,
            first_shown: Arc::default(),
        }
    }

    /// The inputs of the whole view.
    pub fn inputs(&self) -> (Arc<State>, PlanningInput) {
        self.basis_under(&self.raft_status())
    }

    fn basis_under(&self, raft_status: &RaftStatus) -> (Arc<State>, PlanningInput) {
        let mut input = self.inputs.planning_input_at(raft_status);
        input.quorum &= self.inputs.peers.is_led();
        if !input.quorum {
            answering::look_anew(&mut input, raft_status.leader.as_deref().map(VmName::new));
        }
        (self.state_under(raft_status), input)
    }

    pub fn raft_status(&self) -> RaftStatus {
        self.cluster.consensus.status().borrow().clone()
    }

    /// The counters of this replica's own actions.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The milliseconds by which this wall clock is ahead of the cluster's time; `None` before the first measurement.
    pub fn clock_difference_ms(&self) -> Option<i64> {
        self.inputs.peers.differences.known().get(&self.cluster.node.name).copied()
    }

    /// The milliseconds by which the cluster's time is ahead of the platform's; `None` where the endpoint sends no
    /// date.
    pub fn platform_difference_ms(&self) -> Option<i64> {
        self.inputs.peers.differences.platform()
    }

    /// The configured workloads of this VM whose last check found a fault.
    pub fn checks_failed(&self) -> usize {
        self.checks.all().values().filter(|fault| fault.is_some()).count()
    }

    pub fn bytes_on_disk(&self) -> Option<u64> {
        self.cluster.consensus.bytes_on_disk()
    }

    pub fn status(&self) -> shown::Status {
        let raft_status = self.raft_status();
        let (state, input) = self.basis_under(&raft_status);
        shown::Status {
            replica: self.cluster.node.name.to_string(),
            cluster: self.cluster.node.cluster.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            role: raft_status.role.as_str().into(),
            outside_because: if let RaftRole::Outside(why) = &raft_status.role { Some(why.clone()) } else { None },
            leader: raft_status.leader,
            term: raft_status.term,
            quorum: input.quorum,
            paused: state.pause(input.now).map(|pause| operator_record::shown(&pause, None, &state, &input)),
            replicas: replica::all(&self.inputs, &state, &input),
            workloads: workload::all(&state, &input),
            events: state.open_events().map(|event| self.shown(&state, event, &input)).collect(),
            groups: group::all(&state, &input),
            now: rfc3339(input.now),
            platform_difference_ms: self.platform_difference_ms(),
            cluster_version: u32::try_from(state.version).unwrap_or(u32::MAX),
            warnings: self.warnings(&input),
            members: member::all(&state, &input),
            endpoint: self.cluster.node.endpoint.clone(),
            doctor: self.cluster.node.doctor.clone(),
        }
    }

    /// Warnings from the log, and from the own observations of this replica. A replica without a quorum does not warn of
    /// second approvers, because unknown approvals may explain the event.
    fn warnings(&self, input: &PlanningInput) -> Vec<shown::Warning> {
        let (state, now) = (self.cluster.state(), input.now);
        let knows = self.cluster.reconciliation_known(&state);
        let mut warnings = if knows { warning::second_approvals(&state, now) } else { Vec::new() };
        warnings.drain(..warnings.len().saturating_sub(warning::MOST));
        warnings.extend(warning::failed_restores(&state));
        warnings.extend(warning::not_ready(&state, &self.cluster.node.name, &self.unready));
        warnings.extend(warning::shared_hosts(&state));
        warnings.extend(warning::overdrafts(&state, now));
        warnings.extend(warning::events_beyond(&state));
        warnings.extend(warning::implausible_notices(&state));
        warnings.extend(warning::other_vm_name(&self.cluster.node.name, self.metrics.vm_name.differs()));
        warnings.extend(warning::no_documents(self.metrics.metadata_failure.known()));
        warnings.extend(warning::failed_checks(&self.cluster.node, &self.checks));
        warnings.extend(warning::unknown_roles(&state, &self.cluster.node.name, &self.unknown_roles));
        warnings.extend(warning::excess(&self.metrics.excess));
        warnings.extend(warning::platform_time_differs(&self.inputs.peers.differences));
        warnings.extend(warning::time_in_doubt(&self.inputs.peers.differences));
        warnings.extend(self.time_from_before_the_start());
        warnings.extend(warning::policies_differ(&self.inputs.peers.policies));
        let half_removed =
            warning::half_removed(&self.cluster).into_iter().map(|left| left.text(&self.cluster.node.name));
        let undone = half_removed.chain(warning::single_members(&state, &input.members)).collect();
        warnings.extend(self.first_shown.warnings(undone, now));
        warnings.extend(self.tls().into_iter().flat_map(|tls| warning::of_certificate(tls, clock::now())));
        warnings
    }

    /// The number of replicas that an operator removed, and that are still configured here or still run.
    pub fn half_removed(&self) -> usize {
        warning::half_removed(&self.cluster).len()
    }

    fn time_from_before_the_start(&self) -> Option<shown::Warning> {
        Some(warning::time_from_before_the_start(self.cluster.state().now, self.time_behind()?))
    }

    /// By how much the times of this replica are behind the VM's clock: since its start the replica has no time from the
    /// cluster.
    fn time_behind(&self) -> Option<Duration> {
        let time = &self.cluster.time;
        let behind = Duration::from_millis(u64::try_from(time.wall_is_ahead_by()).unwrap_or_default());
        let is_old = time.trust() == Trust::Unknown && !self.cluster.consensus.status_now().has_leader();
        (is_old && behind > WARN_ABOVE).then_some(behind)
    }

    /// This replica's TLS credentials; `None` where the replica uses plain text.
    pub fn tls(&self) -> Option<&Credentials> {
        self.cluster.consensus.tls()
    }

    /// The most recent closed events, oldest first, and then the open events.
    pub fn events(&self) -> shown::EventList {
        let (state, input) = self.inputs();
        let closed = state.closed_events().skip(state.history.len().saturating_sub(RECENT));
        let events = closed.chain(state.open_events()).map(|event| self.shown(&state, event, &input)).collect();
        shown::EventList { events, next: None }
    }

    /// A page of all kept events.
    pub fn page(&self, from: &PageStart, since: Option<Timestamp>) -> shown::EventList {
        let (state, input) = self.inputs();
        page::of(&state, from, since, |event| self.shown(&state, event, &input))
    }

    /// The event with this id, open or closed.
    pub fn event(&self, id: &str) -> Option<shown::Event> {
        let (state, input) = self.inputs();
        Some(self.shown(&state, state.event(&EventId::new(id))?, &input))
    }

    /// The event with this id, or the only event with this beginning of an id.
    pub fn select_event(&self, given: &str) -> Result<shown::Event, NotSelected> {
        let (state, input) = self.inputs();
        Ok(self.shown(&state, state.select_event(given)?, &input))
    }

    fn shown(&self, state: &State, event: &Event, input: &PlanningInput) -> shown::Event {
        let mut told = event::shown(state, event, input, self.doctor());
        // `explain` shows one event and no warnings, and its times would promise too much.
        let waits = told.blocker.as_mut().filter(|blocker| blocker.code == "no_quorum");
        if let Some((blocker, behind)) = waits.zip(self.time_behind()) {
            blocker.message.push_str(&warning::times_are_behind(behind));
        }
        told
    }

    /// The command that finds a fault of this replica, and usually of any replica, on its VM.
    pub fn doctor(&self) -> &str {
        &self.cluster.node.doctor
    }

    /// The committed state, with this replica's observations and actions in isolation that are not in the log yet.
    pub fn state(&self) -> Arc<State> {
        self.state_under(&self.raft_status())
    }

    fn state_under(&self, raft_status: &RaftStatus) -> Arc<State> {
        let (state, journal) = (self.cluster.state(), self.journal.entries());
        let alone = self.inputs.isolated_view(raft_status);
        if journal.is_empty() && alone.is_none() {
            return state;
        }
        let mut told = with_local_facts(&state, &self.cluster.node.name, alone.as_ref(), &journal);
        // Without a leader the log does not learn of a change of a role.
        if let Some(own) = told.replicas.get_mut(&self.cluster.node.name).filter(|_| alone.is_some()) {
            let own = Arc::make_mut(own);
            for (workload, role) in self.roles.all() {
                own.conditions.entry(workload).or_default().role = role;
            }
        }
        Arc::new(told)
    }

    /// The replica is ready to take part: a quorum exists, the endpoint answers and the workloads are registered.
    pub fn is_ready(&self) -> Result<(), String> {
        let state = self.cluster.state();
        if !self.inputs().1.quorum {
            return Err("there is no quorum".into());
        }
        if !state.replicas.contains_key(&self.cluster.node.name) {
            return Err("this replica is not registered yet".into());
        }
        match self.inputs.planning_input().peers.get(&self.cluster.node.name).map(|contact| contact.imds) {
            Some(ImdsHealth::Healthy) => Ok(()),
            Some(ImdsHealth::Unknown | ImdsHealth::Stalled) | None => {
                Err("the metadata endpoint returns no documents".into())
            }
        }
    }

    /// The reason why this process no longer does useful work.
    pub fn stalled_loop(&self) -> Option<String> {
        let stuck = self.watchdog.stalled_loop()?;
        Some(format!("the {} loop of this replica has stalled", stuck.as_str()))
    }

    /// The changes by which a status becomes out of date.
    pub fn changes(&self) -> Changes {
        Changes {
            state: self.cluster.committed.clone(),
            raft_status: self.cluster.consensus.status(),
            journal: self.journal.changes(),
        }
    }
}
