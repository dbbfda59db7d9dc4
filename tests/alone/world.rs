//! What the model's state is made of: the log's fold, what each replica has of its own, the cloud, and what is on its
//! way.

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

/// One bounded cluster. Every event is for another member of one group, which may lose one at once.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: usize,
    /// Who asked for each event, in the order in which they are claimed; the last is for the first replica, and so on.
    pub(crate) events: Vec<Source>,
    /// The workloads have a hook that runs on their own VM.
    pub(crate) has_hook: bool,
    /// How long a user-initiated event is prepared at the most.
    pub(crate) budget: Duration,
    /// How often an operator holds an event.
    pub(crate) holds: u8,
    /// How many moments there are.
    pub(crate) moments: u8,
    pub(crate) faults: Faults,
    pub(crate) mutant: Mutant,
}

/// How many there are at most, or have been.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) cuts: u8,
    pub(crate) crashes: u8,
    /// Of a new leader while the old one is well.
    pub(crate) elections: u8,
    /// Replies that are not waited for any longer, and posts that do not leave their machine.
    pub(crate) losses: u8,
    /// Posts and accounts that take longer than no time.
    pub(crate) delays: u8,
    /// Events that those in contact see only after the others.
    pub(crate) lates: u8,
    /// Events that leave the documents though nobody approved them.
    pub(crate) cancels: u8,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct World {
    /// What is decided: in a pair also what only its leader has, since nobody else can lead without it.
    pub(crate) log: Arc<State>,
    pub(crate) moment: u8,
    pub(crate) clouds: Vec<Cloud>,
    pub(crate) leader: Option<usize>,
    pub(crate) term: u64,
    pub(crate) turn: u64,
    pub(crate) leading_since: Timestamp,
    pub(crate) replicas: Vec<Local>,
    /// Posts that have left their replica and arrive at any later time.
    pub(crate) wire: BTreeSet<Sent>,
    /// A claim that its leader has planned, and proposes at any later time.
    pub(crate) late: Option<(usize, Command)>,
    pub(crate) faults: Faults,
    pub(crate) breach: Option<Breach>,
}

/// What the metadata service has of an event.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Cloud {
    pub(crate) shows: Shown,
    /// When it was announced.
    pub(crate) since: Timestamp,
    /// A post took effect.
    pub(crate) approved: bool,
    /// The endpoints of those in contact do not show it yet.
    pub(crate) is_late: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shown {
    NotYet,
    Scheduled,
    Gone,
}

/// What a replica has that is not in the log. A crash takes all but the journal and what it sent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Local {
    pub(crate) up: bool,
    /// Out of contact with everybody.
    pub(crate) cut: bool,
    /// What it had in its log when it lost contact; `None` while it has contact.
    pub(crate) behind: Option<Behind>,
    /// Since when it hears no leader, or is up.
    pub(crate) alone_since: Timestamp,
    /// When a leader, and of which term, heard it last; `None` while one does.
    pub(crate) acknowledged: Option<(u64, Timestamp)>,
    /// What its endpoint shows of each event.
    pub(crate) sees: Vec<Shown>,
    pub(crate) journal: Vec<JournalEntry>,
    /// The entry of the journal that it is acting on.
    pub(crate) alone: Option<(Timestamp, Alone)>,
    pub(crate) post: Option<(AttemptId, Post)>,
    /// Built, and on its way to the log; arrives at any later time.
    pub(crate) account: Option<Command>,
    /// Settled on, where a mutant lets time pass before it is written down.
    pub(crate) chosen: Option<JournalEntry>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Behind {
    pub(crate) state: Arc<State>,
    /// Without the end of its log; only where a mutant asks for it.
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
    /// The entry of its journal with this time.
    Takeover(Timestamp),
}

/// The property that is broken, by the name it has in `behaviour.md` 13.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Breach {
    S2,
    S4,
    S5,
    /// A leader claimed something before its own account.
    Unaccounted,
    /// What a leader plans on the current state is refused, for ever.
    Stuck,
    Lifecycle,
}

impl From<Violation> for Breach {
    fn from(broken: Violation) -> Self {
        match broken {
            Violation::ClaimedTwice | Violation::ApprovedUnclaimed => Self::S2,
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
    /// The last replica has just begun to lead: nobody has given an account yet.
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

    /// The leader, as far as it has a quorum.
    pub(crate) fn led_by(&self) -> Option<usize> {
        self.leader.filter(|leader| self.has_quorum() && self.connected(*leader))
    }

    /// It hears a leader, or is one.
    pub(crate) fn has_contact(&self, replica: usize) -> bool {
        self.led_by().is_some() && self.connected(replica)
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.clouds.iter().all(|cloud| cloud.shows == Shown::Gone)
    }

    /// What a replica's endpoint says now.
    pub(crate) fn document(&self, cluster: &Cluster, replica: usize) -> Document {
        let listed = self.replicas[replica].sees.iter().enumerate().filter(|(_, shown)| **shown == Shown::Scheduled);
        Document::new(listed.map(|(event, _)| cluster.announcement(event)).collect())
    }

    /// Since when its endpoint lists an event; documents agree within the moment. That a replica which is restarted
    /// counts from there makes no difference: it is alone since then.
    pub(crate) fn seen_since(&self, replica: usize) -> BTreeMap<EventId, Timestamp> {
        let local = &self.replicas[replica];
        let listed = local.sees.iter().enumerate().filter(|(_, shown)| **shown == Shown::Scheduled);
        listed.map(|(event, _)| (event_id(event), self.clouds[event].since)).collect()
    }

    /// What a replica has in its log.
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

    /// The first breach counts.
    pub(crate) fn broke(&mut self, breach: Breach) {
        self.breach = self.breach.or(Some(breach));
    }
}
