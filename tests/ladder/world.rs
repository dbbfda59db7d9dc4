//! The state of the abstract cluster: one log, the replicas with their journals, the cloud, and what is on its way.

use std::collections::BTreeSet;

use crate::rule::Rule;

/// One bounded cluster. All events affect one group, each another member of it, and the group may lose one at once.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    pub(crate) replicas: usize,
    pub(crate) events: Vec<Source>,
    pub(crate) faults: Faults,
    /// The rule that nobody keeps.
    pub(crate) without: Option<Rule>,
}

/// How many there are at most, or have been.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) cuts: u8,
    pub(crate) crashes: u8,
    /// Of a new leader while the old one is well.
    pub(crate) elections: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Source {
    User,
    Platform,
    /// A user asked for it, and a hook of it was begun and may still run.
    UserWithHook,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct World {
    pub(crate) log: Log,
    pub(crate) leader: usize,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cloud: Vec<Shown>,
    /// Posts that have left their replica and arrive at any later time, or never.
    pub(crate) wire: BTreeSet<(usize, usize)>,
    pub(crate) faults: Faults,
    pub(crate) breach: Option<Breach>,
}

/// What is committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Log {
    pub(crate) events: Vec<Known>,
    /// One for each voter.
    pub(crate) suspicions: Vec<Suspicion>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Known {
    pub(crate) taken_up: bool,
    pub(crate) approver: Option<usize>,
    /// A journal that was committed says that somebody approved it alone.
    pub(crate) is_journaled: bool,
    pub(crate) is_closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Suspicion {
    pub(crate) number: u8,
    pub(crate) stands: bool,
}

/// What a replica has of its own. A crash takes all but the journal.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Node {
    pub(crate) is_up: bool,
    pub(crate) is_cut: bool,
    /// What it had applied when it lost contact; `None` while it has contact.
    pub(crate) stale: Option<Log>,
    pub(crate) silence: Silence,
    /// The number of its suspicion when it lost contact.
    pub(crate) lost_at: u8,
    /// On disk: the events that it approved, or is about to approve, alone.
    pub(crate) journal: BTreeSet<usize>,
    /// It may claim nothing before its own report is committed.
    pub(crate) owes_report: bool,
    /// Chosen, and not yet in the journal.
    pub(crate) chosen: Option<usize>,
    /// In the journal, and not yet sent.
    pub(crate) intent: Option<usize>,
    /// On its way to the log; arrives at any later time.
    pub(crate) report: Option<Report>,
    /// What it ever sent alone.
    pub(crate) sent: BTreeSet<usize>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Report {
    pub(crate) number: u8,
    pub(crate) journal: BTreeSet<usize>,
}

/// How long a replica has been without contact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Silence {
    Short,
    /// Half of `takeover_after` is over: it is suspect by now, wherever there is a leader.
    Half,
    /// It may act alone.
    Whole,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Shown {
    NotYet,
    Scheduled,
    /// By a post of ours.
    Approved,
    Gone,
}

/// The property that is broken, by the name it has in `behaviour.md` 13.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Breach {
    S2,
    S4,
    S5,
}

impl World {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let node = Node {
            is_up: true,
            is_cut: false,
            stale: None,
            silence: Silence::Short,
            lost_at: 0,
            journal: BTreeSet::new(),
            owes_report: false,
            chosen: None,
            intent: None,
            report: None,
            sent: BTreeSet::new(),
        };
        Self {
            log: Log {
                events: vec![Known::default(); cluster.events.len()],
                suspicions: vec![Suspicion::default(); cluster.replicas],
            },
            leader: 0,
            nodes: vec![node; cluster.replicas],
            cloud: vec![Shown::NotYet; cluster.events.len()],
            wire: BTreeSet::new(),
            faults: Faults::default(),
            breach: None,
        }
    }

    pub(crate) fn is_connected(&self, replica: usize) -> bool {
        self.nodes[replica].is_up && !self.nodes[replica].is_cut
    }

    /// Enough replicas reach each other to elect and to commit.
    pub(crate) fn has_quorum(&self) -> bool {
        (0..self.nodes.len()).filter(|replica| self.is_connected(*replica)).count() * 2 > self.nodes.len()
    }

    pub(crate) fn is_led(&self) -> bool {
        self.has_quorum() && self.is_connected(self.leader)
    }

    /// It hears of a leader.
    pub(crate) fn has_contact(&self, replica: usize) -> bool {
        self.is_led() && self.is_connected(replica)
    }

    /// What a replica knows of the log.
    pub(crate) fn view(&self, replica: usize) -> &Log {
        self.nodes[replica].stale.as_ref().unwrap_or(&self.log)
    }

    /// The document lists it.
    pub(crate) fn is_listed(&self, event: usize) -> bool {
        matches!(self.cloud[event], Shown::Scheduled | Shown::Approved)
    }

    pub(crate) fn broke(&mut self, breach: Breach) {
        self.breach = self.breach.or(Some(breach));
    }
}

impl Cluster {
    pub(crate) fn keeps(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    pub(crate) fn is_users(&self, event: usize) -> bool {
        self.events[event] != Source::Platform
    }
}
