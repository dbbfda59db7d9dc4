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
mod warnings;
mod workload;

use std::sync::Arc;

pub use self::changes::Changes;
pub use self::event::{hook_label, status};
pub use self::member::state_word;
pub use self::page::PageStart;
pub use self::post_detail::detail;
pub use self::primary::{going_down, primaries, unmoved_primaries, unmoved_without};
use super::SharedParts;
use super::clock::rfc3339;
use super::cluster::ClusterHandle;
use super::input_source::InputSource;
use super::journal::ApprovalJournal;
use super::latest_answers::{LatestFaults, LatestRoles};
use super::metrics::Metrics;
use super::watchdog::Watchdog;
use crate::consensus::{RaftRole, RaftStatus};
use crate::net::tls::Credentials;
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

    /// The open events whose approval is still to come; without drills, which are never approved.
    pub fn undecided_events(&self) -> Vec<shown::Event> {
        let (state, input) = self.inputs();
        let undecided = state.open_events().filter(|event| event.is_undecided() && !event.is_drill());
        undecided.map(|event| self.shown(&state, event, &input)).collect()
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
