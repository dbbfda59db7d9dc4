//! State of the model: the state of the log, each replica's own data, the cloud, and messages in flight.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use allclear::core::model::claim::PostOutcome;
use allclear::core::model::command::{ApplyResult, BeginLeadership, Command, Entry, RegisterWorkloads, ReportDocument};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::id::{AttemptId, EventId, GroupName, VmName, WorkloadName};
use allclear::core::model::isolated_approval::JournalEntry;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Hook, OnAbsent, OnFailure, Origin, Phase, Workload};
use allclear::core::verify::invariants::{self, Violation};
use allclear::core::verify::transition;

use crate::mutant::Mutant;

/// One moment: half of `takeover_after`.
pub(crate) const MOMENT: Duration = Duration::from_secs(5);

/// One bounded cluster. Every event is for another member of one group, which may lose one member at a time.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: usize,
    /// Source of each event, in the order of the claims; the last event is for the first replica, and so on.
    pub(crate) events: Vec<Source>,
    /// The workloads have a hook which runs on their own VM.
    pub(crate) has_hook: bool,
    /// Maximum preparation time of a user-initiated event.
    pub(crate) budget: Duration,
    /// Maximum number of holds by an operator.
    pub(crate) holds: u8,
    /// Number of moments.
    pub(crate) moments: u8,
    pub(crate) faults: Faults,
    pub(crate) mutant: Mutant,
}

/// Maximum number of faults of each kind, or the number so far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) cuts: u8,
    pub(crate) crashes: u8,
    /// Elections of a new leader while the old leader is well.
    pub(crate) elections: u8,
    /// Replies which are no longer waited for, and posts which do not leave their machine.
    pub(crate) losses: u8,
    /// Posts and reconciliations which take time.
    pub(crate) delays: u8,
    /// Events which replicas in contact see later than the other replicas.
    pub(crate) lates: u8,
    /// Events which leave the documents without an approval.
    pub(crate) cancels: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct World {
    /// The decided state: in a pair also entries known only to the leader, since no other replica can lead without
    /// them.
    pub(crate) log: Arc<State>,
    pub(crate) moment: u8,
    pub(crate) clouds: Vec<Cloud>,
    pub(crate) leader: Option<usize>,
    pub(crate) term: u64,
    pub(crate) turn: u64,
    pub(crate) leading_since: Timestamp,
    pub(crate) replicas: Vec<Local>,
    /// Posts which have left their replica and arrive at any later time.
    pub(crate) wire: BTreeSet<Sent>,
    /// A planned claim which the leader proposes at any later time.
    pub(crate) late: Option<(usize, Command)>,
    pub(crate) faults: Faults,
    pub(crate) breach: Option<Breach>,
}

/// State of an event at the metadata service.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cloud {
    pub(crate) shows: Shown,
    /// Time of the announcement.
    pub(crate) since: Timestamp,
    /// A post took effect.
    pub(crate) approved: bool,
    /// The endpoints of the replicas in contact do not show the event yet.
    pub(crate) is_late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shown {
    NotYet,
    Scheduled,
    Gone,
}

/// Replica data outside the log. A crash loses all of this data but the journal and the sent messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Local {
    pub(crate) up: bool,
    /// No contact with any other replica.
    pub(crate) cut: bool,
    /// The replica's log when contact was lost; `None` while the replica has contact.
    pub(crate) behind: Option<Behind>,
    /// Time since which the replica follows no leader, or is up.
    pub(crate) alone_since: Timestamp,
    /// Term of the last leader which heard the replica, and the time; `None` while a leader hears the replica.
    pub(crate) acknowledged: Option<(u64, Timestamp)>,
    /// State of each event at the replica's endpoint.
    pub(crate) sees: Vec<Shown>,
    pub(crate) journal: Vec<JournalEntry>,
    /// The journal entry in progress.
    pub(crate) alone: Option<(Timestamp, Alone)>,
    pub(crate) post: Option<(AttemptId, Post)>,
    /// A reconciliation which is built and on its way to the log; arrives at any later time.
    pub(crate) account: Option<Command>,
    /// The chosen entry, where a mutant lets time pass before the entry is written into the journal.
    pub(crate) chosen: Option<JournalEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Behind {
    pub(crate) state: Arc<State>,
    /// The state without the end of the log; only where a mutant needs this state.
    pub(crate) applied: Option<Arc<State>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Alone {
    /// In the journal, and not sent.
    Begun,
    Sent,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Post {
    Sent,
    Answered(PostOutcome),
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Sent {
    pub(crate) by: usize,
    pub(crate) event: usize,
    pub(crate) why: Why,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Why {
    Claim(AttemptId),
    /// The journal entry with this time.
    Takeover(Timestamp),
}

/// The broken property, by its id in `SPEC.md` 18.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Breach {
    S2,
    S4,
    S5,
    /// A leader made a claim before its own reconciliation.
    Unaccounted,
    /// The leader's plan for the current state is rejected, for ever.
    Stuck,
    Lifecycle,
}

impl From<Violation> for Breach {
    fn from(broken: Violation) -> Self {
        match broken {
            Violation::ClaimedTwice | Violation::LastResortTwice | Violation::ApprovedUnclaimed => Self::S2,
            Violation::BudgetExceeded => Self::S4,
            Violation::TakenOverWrongly => Self::S5,
            Violation::ClaimedUnprepared
            | Violation::ClaimedAgainstWish
            | Violation::ApprovedUnseen
            | Violation::RunTwice
            | Violation::RunBeside
            | Violation::AskedWrongly
            | Violation::RestoredWrongly
            | Violation::UndoneWrongly
            | Violation::StageOutOfOrder
            | Violation::Misplaced
            | Violation::Forgotten
            | Violation::DrillApproved
            | Violation::DrillBesideEvent
            | Violation::FailoverOutOfTurn
            | Violation::NotRestored
            | Violation::StintMixed
            | Violation::GivenBackTooOften
            | Violation::Rewritten => Self::Lifecycle,
        }
    }
}

pub(crate) fn name(replica: usize) -> VmName {
    VmName::new(["a", "b", "c"][replica])
}

pub(crate) fn event_id(event: usize) -> EventId {
    EventId::new(["e", "f", "g"][event])
}

impl Cluster {
    pub(crate) fn members(&self) -> Vec<VmName> {
        (0..self.replicas).map(name).collect()
    }

    pub(crate) fn announcement(&self, event: usize) -> Announcement {
        Announcement {
            id: event_id(event),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: self.events[event].clone(),
            resource_type: String::new(),
            resources: vec![name(self.events.len() - 1 - event)],
            not_before: NotBefore::At(Timestamp(0).plus(Duration::from_hours(1))),
            description: String::new(),
            duration: None,
        }
    }

    fn workload(&self) -> Workload {
        let hook = Hook { max_attempts: 1, on_failure: OnFailure::Continue, ..Hook::of(Phase::Drain) };
        let hooks = self.has_hook.then_some(hook).into_iter().collect();
        Workload {
            name: WorkloadName("w".into()),
            group: Some(GroupName("g".into())),
            after: Vec::new(),
            hooks,
            origin: Origin::Configured,
            on_absent: OnAbsent::Hold,
        }
    }
}

impl World {
    /// The last replica has just begun to lead: no replica has reconciled yet.
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let local = Local {
            up: true,
            cut: false,
            behind: None,
            alone_since: Timestamp(0),
            acknowledged: None,
            sees: vec![Shown::NotYet; cluster.events.len()],
            journal: Vec::new(),
            alone: None,
            post: None,
            account: None,
            chosen: None,
        };
        let leader = cluster.replicas - 1;
        let unannounced = Cloud { shows: Shown::NotYet, since: Timestamp(0), approved: false, is_late: false };
        let mut world = Self {
            log: Arc::default(),
            moment: 0,
            clouds: vec![unannounced; cluster.events.len()],
            leader: Some(leader),
            term: 1,
            turn: 1,
            leading_since: Timestamp(-1),
            replicas: vec![local; cluster.replicas],
            wire: BTreeSet::new(),
            late: None,
            faults: Faults::default(),
            breach: None,
        };
        for replica in 0..cluster.replicas {
            let workloads = vec![cluster.workload()];
            world.commit(
                cluster,
                replica,
                Command::RegisterWorkloads(RegisterWorkloads { workloads, groups: Vec::new() }),
            );
            world.commit(
                cluster,
                replica,
                Command::ReportDocument(ReportDocument { after: 0, document: Document::default() }),
            );
        }
        world.commit(
            cluster,
            leader,
            Command::BeginLeadership(BeginLeadership { term: 1, turn: 1, voters: cluster.members() }),
        );
        world
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp(0).plus(MOMENT * u32::from(self.moment))
    }

    pub(crate) fn connected(&self, replica: usize) -> bool {
        self.replicas[replica].up && !self.replicas[replica].cut
    }

    /// Enough replicas reach each other to elect and to commit.
    pub(crate) fn has_quorum(&self) -> bool {
        (0..self.replicas.len()).filter(|replica| self.connected(*replica)).count() * 2 > self.replicas.len()
    }

    /// The leader, if it has a quorum.
    pub(crate) fn led_by(&self) -> Option<usize> {
        self.leader.filter(|leader| self.has_quorum() && self.connected(*leader))
    }

    /// The replica follows a leader, or is the leader.
    pub(crate) fn has_contact(&self, replica: usize) -> bool {
        self.led_by().is_some() && self.connected(replica)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.clouds.iter().all(|cloud| cloud.shows == Shown::Gone)
    }

    /// Current document of a replica's endpoint.
    pub(crate) fn document(&self, cluster: &Cluster, replica: usize) -> Document {
        let listed = self.replicas[replica].sees.iter().enumerate().filter(|(_, shown)| **shown == Shown::Scheduled);
        Document::new(listed.map(|(event, _)| cluster.announcement(event)).collect())
    }

    /// Time since which the replica's endpoint lists each event; documents agree within the moment. A restarted replica
    /// counts from the restart; this makes no difference, since the replica has been isolated since the restart.
    pub(crate) fn seen_since(&self, replica: usize) -> BTreeMap<EventId, Timestamp> {
        let local = &self.replicas[replica];
        let listed = local.sees.iter().enumerate().filter(|(_, shown)| **shown == Shown::Scheduled);
        listed.map(|(event, _)| (event_id(event), self.clouds[event].since)).collect()
    }

    /// The state in a replica's log.
    pub(crate) fn known(&self, replica: usize) -> &Arc<State> {
        self.replicas[replica].behind.as_ref().map_or(&self.log, |behind| &behind.state)
    }

    /// Appends an entry to the log.
    pub(crate) fn commit(&mut self, cluster: &Cluster, by: usize, command: Command) -> ApplyResult {
        let before = self.log.clone();
        let entry = Entry { at: self.now(), by: name(by), command };
        let verdict = cluster.mutant.apply(Arc::make_mut(&mut self.log), &entry);
        if let Some(broken) = transition::violated(&before, &self.log).or_else(|| invariants::violated(&self.log)) {
            self.broke(broken.into());
        }
        if matches!(entry.command, Command::ClaimApproval(_))
            && verdict == ApplyResult::Applied
            && before.is_suspect(&entry.by)
        {
            self.broke(Breach::Unaccounted);
        }
        verdict
    }

    /// Records the first breach only.
    pub(crate) fn broke(&mut self, breach: Breach) {
        self.breach = self.breach.or(Some(breach));
    }
}
