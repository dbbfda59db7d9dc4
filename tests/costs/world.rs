//! Three replicas of the pure core, with a chosen number of events, hooks or workloads.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::core::apply::apply;
use allclear::core::assignments::{Assignment, assignments};
use allclear::core::model::attempt::Outcome;
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{
    ApplyResult, Command, Entry, FinishAttempt, RecordPost, RegisterWorkloads, Rejection, ReportDocument,
};
use allclear::core::model::document::Document;
use allclear::core::model::id::VmName;
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Hook, OnAbsent, Origin, Phase, Workload};
use allclear::core::plan::plan;
use allclear::core::planning_input::{PeerHealth, PlanningInput, Timing};
use allclear::core::policy::Policy;
use allclear::core::verify::invariants;
use allclear::imds::read_document;

use super::allocations;

pub(crate) const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];
const ROUNDS_AT_MOST: usize = 5_000;

pub(crate) struct World {
    pub(crate) state: State,
    pub(crate) input: PlanningInput,
}

/// Allocations for the whole course of an event.
#[derive(Default)]
pub(crate) struct Cost {
    pub(crate) planned: u64,
    pub(crate) applied: u64,
}

fn event(number: usize, status: &str) -> String {
    format!(
        r#"{{"EventId":"{number:08}-0000-4000-8000-000000000000","EventStatus":"{status}","EventType":"Reboot",
        "ResourceType":"VirtualMachine","Resources":["db-0"],"EventSource":"Platform","NotBefore":"",
        "Description":"Virtual machine is going to be restarted as requested by authorized user.","DurationInSeconds":-1}}"#
    )
}

fn body(events: &[String]) -> Vec<u8> {
    format!(r#"{{"DocumentIncarnation":1,"Events":[{}]}}"#, events.join(",")).into_bytes()
}

/// An answer of the metadata service with `events` events.
pub(crate) fn wire(events: usize) -> Vec<u8> {
    body(&(0..events).map(|number| event(number, "Scheduled")).collect::<Vec<_>>())
}

/// A document with one event.
pub(crate) fn document(number: usize) -> Document {
    read_document(200, &body(&[event(number, "Scheduled")])).unwrap()
}

impl World {
    fn new(workloads: usize) -> Self {
        let contact = PeerHealth {
            reachable: true,
            since: Timestamp(0),
            imds: ImdsHealth::Healthy,
            imds_since: Timestamp(0),
            document_age: Some(Duration::ZERO),
            answers_in: Duration::ZERO,
            operator_seq: 0,
            can_acknowledge: false,
        };
        let members = VMS.map(VmName::new);
        let input = PlanningInput {
            now: Timestamp(0),
            me: members[1].clone(),
            members: members.to_vec(),
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            peers: members.iter().map(|name| (name.clone(), contact)).collect::<BTreeMap<_, _>>(),
            quorum: true,
            leading_since: Timestamp(0),
            leader: None,
            isolated: None,
            policy: Policy::default(),
            timing: Timing::default(),
        };
        let mut world = Self { state: State::default(), input };
        let workload = |number: usize| Workload {
            name: allclear::core::model::id::WorkloadName(format!("workload-{number}").as_str().into()),
            group: None,
            after: Vec::new(),
            hooks: vec![Hook::of(Phase::Drain)],
            origin: Origin::Configured,
            on_absent: OnAbsent::default(),
        };
        for name in &members {
            let workloads = if *name == members[0] { (0..workloads).map(workload).collect() } else { Vec::new() };
            world.commit(name, Command::RegisterWorkloads(RegisterWorkloads { workloads, groups: Vec::new() }));
        }
        world
    }

    /// One workload with one hook, and `closed` closed events.
    pub(crate) fn with_history(closed: usize) -> Self {
        let mut world = Self::new(1);
        world.live(0);
        let one = world.state.history.pop_back().unwrap();
        world.state.history.extend((0..closed).map(|number| {
            let mut event = one.clone();
            std::sync::Arc::make_mut(&mut event).announcement.id = document(number).events[0].id.clone();
            event
        }));
        world
    }

    /// `hooks` workloads with one hook each.
    pub(crate) fn with_hooks(hooks: usize) -> Self {
        Self::new(hooks)
    }

    /// `open` events with running hooks.
    pub(crate) fn with_open(open: usize) -> Self {
        let mut world = Self::new(1);
        world.report(&read_document(200, &wire(open)).unwrap());
        world.carry_on(&mut Cost::default(), false);
        assert_eq!(world.state.open.len(), open);
        world
    }

    /// Runs an event from its announcement until closed.
    pub(crate) fn live(&mut self, number: usize) -> Cost {
        let mut cost = Cost::default();
        self.input.now = self.input.now.plus(Duration::from_secs(1));
        for document in
            [document(number), read_document(200, &body(&[event(number, "Started")])).unwrap(), Document::default()]
        {
            cost.applied += self.report(&document);
            self.carry_on(&mut cost, true);
        }
        let last = self.state.history.back().unwrap();
        assert_eq!(last.stage(), Stage::Closed);
        cost
    }

    /// Allocations for a report of one more event, with `known` known events.
    pub(crate) fn report_one_more(&mut self, known: usize) -> u64 {
        let _shown = self.state.clone();
        let name = VmName::new(VMS[0]);
        let (after, document) = (self.state.replicas[&name].reports, read_document(200, &wire(known + 1)).unwrap());
        let command = Command::ReportDocument(ReportDocument { after, document });
        self.commit(&name, command)
    }

    fn report(&mut self, document: &Document) -> u64 {
        let report = |world: &mut Self, name: VmName| {
            let after = world.state.replicas[&name].reports;
            world.commit(&name, Command::ReportDocument(ReportDocument { after, document: document.clone() }))
        };
        VMS.map(VmName::new).into_iter().map(|name| report(self, name)).sum()
    }

    /// Commits until the planner has no more commands; with `ends`, started actions end at once.
    fn carry_on(&mut self, cost: &mut Cost, ends: bool) {
        for _ in 0..ROUNDS_AT_MOST {
            let mut due = Vec::new();
            cost.planned += allocations(|| due = plan(&self.state, &self.input));
            // Readers hold the state from before the batch, so that changed parts are copied.
            let _shown = self.state.clone();
            let me = self.input.me.clone();
            let mut entries: Vec<_> = due.into_iter().map(|command| (me.clone(), command)).collect();
            if ends {
                entries.extend(VMS.map(VmName::new).iter().flat_map(|name| outcomes(&self.state, name)));
            }
            if entries.is_empty() {
                return;
            }
            for (by, command) in entries {
                cost.applied += self.commit(&by, command);
            }
        }
        panic!("it never comes to rest");
    }

    /// Allocations of the commit, without the check of debug builds.
    fn commit(&mut self, by: &VmName, command: Command) -> u64 {
        let entry = Entry { at: self.input.now, by: by.clone(), command };
        let mut verdict = None;
        let all = allocations(|| verdict = Some(apply(&mut self.state, &entry)));
        // With several events for one workload the leader starts one.
        let is_fine = matches!(verdict, Some(ApplyResult::Applied | ApplyResult::Rejected(Rejection::NotDue)));
        assert!(is_fine, "{verdict:?}: {entry:?}");
        let checked = allocations(|| assert_eq!(invariants::violated(&self.state), None));
        if cfg!(debug_assertions) && verdict == Some(ApplyResult::Applied) { all - checked } else { all }
    }
}

/// The outcomes of all assignments of a replica.
pub(crate) fn outcomes(state: &State, name: &VmName) -> Vec<(VmName, Command)> {
    let done = |errand: Assignment<'_>| match errand {
        Assignment::Run { event, attempt, .. } | Assignment::Cancel { event, attempt } => {
            Command::FinishAttempt(FinishAttempt {
                event: event.announcement.id.clone(),
                attempt: attempt.id,
                outcome: Outcome::Done,
            })
        }
        Assignment::Post { event, claim } => Command::RecordPost(RecordPost {
            event: event.announcement.id.clone(),
            attempt: claim.attempt,
            outcome: PostOutcome::Accepted,
        }),
    };
    assignments(state, name).into_iter().map(|errand| (name.clone(), done(errand))).collect()
}
