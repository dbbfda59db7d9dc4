//! State of the model: the state of the log, the cloud, the replicas, and breaches so far.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use allclear::core::apply::apply;
use allclear::core::model::attempt::Outcome;
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{ApplyResult, BeginDrill, Command, Entry, RegisterSession, RegisterWorkloads};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::drill::Mode;
use allclear::core::model::event::Event;
use allclear::core::model::id::{AttemptId, EventId, VmName};
use allclear::core::model::isolation::ImdsHealth;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Condition, OnAbsent, OnFailure, Origin, Workload};
use allclear::core::planning_input::{PeerHealth, PlanningInput, Timing};
use allclear::core::policy::Policy;
use allclear::core::verify::invariants::{self, Violation};
use allclear::core::verify::transition;

use crate::mutant::Mutant;

/// Times of all actions, in seconds: past the lease of a claim, every pause, the end of a hook and `stale_after`; past
/// the user budget and `give_back_after`; in last call; at NotBefore; past `forget_after` and the time after
/// `forget_after`.
pub(crate) const MOMENTS: [i64; 7] = [0, 70, 130, 880, 900, 9_600, 17_000];
/// The event has left the documents by then, so that the time to restore and to forget lies ahead.
pub(crate) const GONE_BY: i64 = 900;
const NOT_BEFORE: Timestamp = Timestamp(900_000);

/// One bounded cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: usize,
    /// The replicas which each event names.
    pub(crate) events: Vec<Vec<usize>>,
    /// The additional replica which each event names from some moment on.
    pub(crate) grows: Vec<Option<usize>>,
    pub(crate) source: Source,
    /// The workload of every replica.
    pub(crate) workload: Option<Workload>,
    /// Maximum number of operator requests.
    pub(crate) wishes: u8,
    /// Maximum number of faults.
    pub(crate) faults: u8,
    pub(crate) trouble: Trouble,
    /// A drill is under way when the events are announced, at whichever moment.
    pub(crate) drill: bool,
    /// Maximum number of workload changes: another role, or, for session workloads, disconnected and connected again.
    pub(crate) changes: u8,
    /// Maximum number of times a member stops being ready, or is ready again.
    pub(crate) sick: u8,
    /// Maximum number of hook failures; `None` is unlimited.
    pub(crate) failures: Option<u8>,
    /// Announced events may be cancelled.
    pub(crate) cancels: bool,
    /// Maximum number of times an event which had started or was gone is shown as to come again.
    pub(crate) returns: u8,
    /// The first pause before an accepted approval is posted once more.
    pub(crate) repost_after: Duration,
    pub(crate) prepare_ahead: Duration,
    /// The world changes only when no action is pending: for many events, and without races against any event.
    pub(crate) is_patient: bool,
    pub(crate) mutant: Mutant,
}

/// Kinds of faults.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trouble {
    /// Crashes, isolations, elections, lost replies, and time passing while an action was pending.
    Losses,
    /// A copy of any proposal arrives at any later time.
    Delays,
    /// The leader proposes any command at all.
    Rogues,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) log: State,
    /// Index in `MOMENTS`.
    pub(crate) moment: usize,
    /// The cloud's view of each event.
    pub(crate) clouds: Vec<Cloud>,
    pub(crate) leader: usize,
    pub(crate) replicas: Vec<Local>,
    /// A copy of a proposal which arrives late, once.
    pub(crate) late: Option<(VmName, Command)>,
    pub(crate) faults: u8,
    pub(crate) asked: u8,
    pub(crate) changed: u8,
    pub(crate) sickened: u8,
    pub(crate) failed: u8,
    /// Replicas whose workload a hook has begun to take out of service, without a restore since. True once the workload
    /// is out of service entirely.
    pub(crate) stopped: BTreeMap<usize, bool>,
    pub(crate) returned: u8,
    pub(crate) repost_after: Duration,
    pub(crate) prepare_ahead: Duration,
    /// Restores which failed or hung.
    pub(crate) unrestored: u8,
    /// Actual condition of each replica's workload, known to the cluster or not.
    pub(crate) conditions: Vec<Condition>,
    /// Preparing attempts begun in the world.
    pub(crate) begun: BTreeSet<AttemptId>,
    pub(crate) breach: Option<Breach>,
}

/// State of an event at the metadata service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cloud {
    pub(crate) shows: Shown,
    /// The event names one more VM.
    pub(crate) grown: bool,
    /// A post took effect.
    pub(crate) approved: bool,
    pub(crate) posts: u8,
}

/// Stages in this order, unless an event returns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shown {
    ToCome,
    Scheduled,
    Started,
    Gone,
}

/// Replica data outside the log; a crash loses all of this data.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Local {
    pub(crate) up: bool,
    /// No contact with the other replicas: no message from or to the replica arrives.
    pub(crate) cut: bool,
    /// Time since which `up` and `cut` are unchanged.
    pub(crate) since: Timestamp,
    pub(crate) hooks: BTreeMap<AttemptId, Run>,
    pub(crate) post: Option<(AttemptId, Post)>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Run {
    Running,
    Ended(Outcome),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Post {
    /// The claim is confirmed and a fresh document shows the event as Scheduled.
    Confirmed,
    Answered(PostOutcome),
}

/// The broken property, by its id in `SPEC.md` 18.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Breach {
    Unprepared,
    PostedTwice,
    Undecided,
    Uncommitted,
    BudgetExceeded,
    FailoverOutOfTurn,
    NotRestored,
    StintMixed,
    GivenBackTooOften,
    RunTwice,
    RestoredWrongly,
    Lifecycle,
    Drill,
    AgainstWish,
    AskedWrongly,
}

impl From<Violation> for Breach {
    fn from(broken: Violation) -> Self {
        match broken {
            Violation::ClaimedUnprepared => Self::Unprepared,
            Violation::ClaimedTwice | Violation::LastResortTwice => Self::PostedTwice,
            Violation::ApprovedUnclaimed | Violation::TakenOverWrongly => Self::Uncommitted,
            Violation::BudgetExceeded => Self::BudgetExceeded,
            Violation::FailoverOutOfTurn => Self::FailoverOutOfTurn,
            Violation::NotRestored => Self::NotRestored,
            Violation::StintMixed => Self::StintMixed,
            Violation::GivenBackTooOften => Self::GivenBackTooOften,
            Violation::DrillApproved | Violation::DrillBesideEvent => Self::Drill,
            Violation::ClaimedAgainstWish | Violation::ApprovedUnseen => Self::AgainstWish,
            Violation::RunTwice | Violation::RunBeside => Self::RunTwice,
            Violation::AskedWrongly => Self::AskedWrongly,
            Violation::RestoredWrongly | Violation::UndoneWrongly => Self::RestoredWrongly,
            Violation::StageOutOfOrder | Violation::Misplaced | Violation::Rewritten | Violation::Forgotten => {
                Self::Lifecycle
            }
        }
    }
}

pub(crate) fn name(replica: usize) -> VmName {
    VmName::new(["a", "b", "c"][replica])
}

pub(crate) fn event_id(event: usize) -> EventId {
    EventId::new(["e", "f", "g"][event])
}

fn announcement(cluster: &Cluster, id: EventId, status: Status) -> Announcement {
    Announcement {
        id,
        not_before: if status == Status::Started { NotBefore::Unknown } else { NotBefore::At(NOT_BEFORE) },
        status,
        kind: EventType::Reboot,
        source: cluster.source.clone(),
        resource_type: String::new(),
        resources: Vec::new(),
        description: String::new(),
        duration: None,
    }
}

impl Cluster {
    /// A member counts as prepared though no hook ran for it: the member is disconnected, or its hook may fail.
    pub(crate) fn may_fail(&self) -> bool {
        self.workload.iter().flat_map(|it| &it.hooks).any(|hook| hook.on_failure == OnFailure::Continue)
            || self.workload.as_ref().is_some_and(Workload::is_session)
            || self.sick > 0
    }

    /// VMs which an event names.
    pub(crate) fn vms(&self, event: usize, grown: bool) -> Vec<VmName> {
        let more = self.grows.get(event).copied().flatten().filter(|_| grown);
        self.events[event].iter().copied().chain(more).map(name).collect()
    }
}

impl World {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let up = Local { up: true, cut: false, since: Timestamp(0), hooks: BTreeMap::new(), post: None };
        let mut world = Self {
            log: State::default(),
            moment: 0,
            clouds: vec![
                Cloud {
                    shows: if cluster.drill { Shown::ToCome } else { Shown::Scheduled },
                    grown: false,
                    approved: false,
                    posts: 0
                };
                cluster.events.len()
            ],
            // A replica which the event does not affect.
            leader: cluster.replicas - 1,
            replicas: vec![up; cluster.replicas],
            late: None,
            faults: 0,
            asked: 0,
            changed: 0,
            sickened: 0,
            failed: 0,
            unrestored: 0,
            returned: 0,
            repost_after: cluster.repost_after,
            prepare_ahead: cluster.prepare_ahead,
            stopped: BTreeMap::new(),
            conditions: vec![Condition::default(); cluster.replicas],
            begun: BTreeSet::new(),
            breach: None,
        };
        for replica in 0..cluster.replicas {
            let by = name(replica);
            let dialled = cluster.workload.iter().find(|workload| workload.is_session());
            // A fallback for a session workload has the same definition.
            let stands_in = dialled.filter(|workload| workload.on_absent == OnAbsent::Command);
            let configured = cluster.workload.iter().find(|workload| !workload.is_session()).or(stands_in);
            let workloads = configured.map(|it| Workload { origin: Origin::Configured, ..it.clone() });
            let register = Command::RegisterWorkloads(RegisterWorkloads {
                workloads: workloads.into_iter().collect(),
                groups: Vec::new(),
            });
            world.commit(cluster, &by, register);
            if let Some(workload) = dialled.cloned() {
                world.commit(cluster, &by, Command::RegisterSession(RegisterSession { workload }));
            }
        }
        if cluster.drill {
            let made_up = announcement(cluster, EventId::new("drill-a"), Status::Scheduled);
            let (announcement, who) = (Announcement { resources: cluster.vms(0, false), ..made_up }, "it".into());
            world.commit(
                cluster,
                &name(0),
                Command::BeginDrill(BeginDrill { announcement, mode: Mode::Rehearsal, who }),
            );
        }
        world
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(MOMENTS[self.moment] * 1_000)
    }

    pub(crate) fn connected(&self, replica: usize) -> bool {
        self.replicas[replica].up && !self.replicas[replica].cut
    }

    pub(crate) fn place(&self, vm: &VmName) -> usize {
        (0..self.replicas.len()).find(|replica| name(*replica) == *vm).unwrap_or_default()
    }

    pub(crate) fn document(&self, cluster: &Cluster) -> Document {
        let listed = self.clouds.iter().enumerate().filter_map(|(event, cloud)| {
            let status = match cloud.shows {
                Shown::Scheduled => Status::Scheduled,
                Shown::Started => Status::Started,
                Shown::ToCome | Shown::Gone => return None,
            };
            let resources = cluster.vms(event, cloud.grown);
            Some(Announcement { resources, ..announcement(cluster, event_id(event), status) })
        });
        Document::new(listed.collect())
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.clouds.iter().all(|cloud| cloud.shows == Shown::Gone)
    }

    pub(crate) fn may_start(&self, event: usize) -> bool {
        self.clouds[event].approved || self.now() >= NOT_BEFORE
    }

    pub(crate) fn may_return(&self, cluster: &Cluster, event: usize) -> bool {
        let has_gone_on = matches!(self.clouds[event].shows, Shown::Started | Shown::Gone);
        has_gone_on && self.returned < cluster.returns && self.now() < NOT_BEFORE
    }

    /// Event of the cloud to which an attempt or a claim belongs.
    pub(crate) fn event_of(&self, attempt: AttemptId) -> Option<usize> {
        let id = self.id_of(attempt)?;
        (0..self.clouds.len()).find(|event| event_id(*event) == id)
    }

    /// Event or drill to which an attempt or a claim belongs.
    pub(crate) fn id_of(&self, attempt: AttemptId) -> Option<EventId> {
        let is_of = |event: &&Event| {
            event.attempt(attempt).is_some() || event.claims.iter().any(|claim| claim.attempt == attempt)
        };
        Some(self.log.events().find(is_of)?.announcement.id.clone())
    }

    /// True if the workload of a replica is a session workload, as far as the log knows.
    pub(crate) fn is_dialled(&self, cluster: &Cluster, replica: usize) -> bool {
        let Some(workload) = &cluster.workload else { return false };
        let known = self.log.replicas.get(&name(replica)).and_then(|replica| replica.workload(&workload.name));
        known.is_some_and(Workload::is_session)
    }

    pub(crate) fn planning_input(&self) -> PlanningInput {
        let contact = |replica: usize| PeerHealth {
            reachable: self.connected(replica),
            since: self.replicas[replica].since,
            imds: ImdsHealth::Healthy,
            imds_since: Timestamp(0),
            document_age: Some(Duration::ZERO),
            answers_in: Duration::ZERO,
            operator_seq: 0,
            can_acknowledge: false,
        };
        let members: Vec<VmName> = (0..self.replicas.len()).map(name).collect();
        PlanningInput {
            now: self.now(),
            me: name(self.leader),
            peers: (0..self.replicas.len()).map(|replica| (name(replica), contact(replica))).collect(),
            members,
            learners: BTreeSet::new(),
            versions: BTreeMap::new(),
            quorum: true,
            leading_since: Timestamp(0),
            leader: None,
            isolated: None,
            policy: Policy { prepare_ahead: self.prepare_ahead, repost_after: self.repost_after, ..Policy::default() },
            timing: Timing::default(),
        }
    }

    /// Appends an entry to the log, which every replica applies.
    pub(crate) fn commit(&mut self, cluster: &Cluster, by: &VmName, command: Command) -> ApplyResult {
        let before = self.log.clone();
        let entry = Entry { at: self.now(), by: by.clone(), command };
        let verdict = match cluster.mutant.overrules(&mut self.log, &entry) {
            Some(verdict) => verdict,
            None => apply(&mut self.log, &entry),
        };
        if let Some(broken) = transition::violated(&before, &self.log).or_else(|| invariants::violated(&self.log)) {
            self.broke(broken.into());
        }
        verdict
    }

    /// Records the first breach only.
    pub(crate) fn broke(&mut self, breach: Breach) {
        self.breach = self.breach.or(Some(breach));
    }
}
