//! The state of the abstract cluster: one log, the replicas with their journals, the cloud, and what is on its way.

use crate::cluster::{Bounds, Cluster, NONE};
use crate::set::Set;

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct World {
    pub(crate) log: Log,
    pub(crate) leader: usize,
    pub(crate) nodes: Vec<Node>,
    pub(crate) cloud: Vec<Sight>,
    /// Events of which a post has left its replica. It arrives at any later time, or never.
    pub(crate) wire: Set,
    pub(crate) appended: Option<Appended>,
    pub(crate) faults: Bounds,
    pub(crate) breach: Option<Breach>,
}

/// No more events than this.
pub(crate) const MOST: usize = 3;

/// What is committed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Log {
    pub(crate) events: [Known; MOST],
    pub(crate) voters: Set,
    pub(crate) suspects: Set,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Known {
    pub(crate) taken_up: bool,
    pub(crate) hook: Hook,
    pub(crate) approver: Option<u8>,
    /// A journal that was committed says that somebody approved it alone.
    pub(crate) is_journaled: bool,
    pub(crate) is_held: bool,
    pub(crate) is_closed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub(crate) enum Hook {
    #[default]
    None,
    /// Begun, and without an outcome. It may run until its deadline.
    Open,
    Settled,
}

/// In the log of a leader that nobody hears, and nowhere else: a report of its document, and a claim.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Appended {
    pub(crate) report: Set,
    pub(crate) claim: usize,
    pub(crate) by: usize,
}

/// What a replica has of its own. A crash takes all but the log and the journal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "facts that do not exclude each other")]
pub(crate) struct Node {
    pub(crate) is_up: bool,
    pub(crate) is_cut: bool,
    /// It had no contact since it was started.
    pub(crate) is_fresh: bool,
    /// What it had of the log when it lost contact; `None` while it has contact.
    pub(crate) stale: Option<Log>,
    pub(crate) silence: Silence,
    /// Since it lost contact it has been put under a new suspicion.
    pub(crate) is_noticed: bool,
    /// The leader has been leader since it lost contact, and counts its silence.
    pub(crate) is_watched: bool,
    /// Events that were in some documents only when half of its time was over.
    pub(crate) spreading: Set,
    /// On disk: the events that it approved, or is about to approve, alone.
    pub(crate) journal: Set,
    /// Chosen, and not yet in the journal.
    pub(crate) chosen: Option<u8>,
    /// In the journal, and not yet sent.
    pub(crate) intent: Option<u8>,
    /// On its way to the log; arrives at any later time.
    pub(crate) account: Option<Account>,
    /// What it ever sent alone.
    pub(crate) sent: Set,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Account {
    /// No new suspicion of it has begun since the account was made.
    pub(crate) is_current: bool,
    pub(crate) journal: Set,
}

/// How long a replica has been without contact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Silence {
    Short,
    /// Half of `takeover_after` is over.
    Half,
    /// It may act alone.
    Whole,
}

/// An event as the documents show it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Sight {
    pub(crate) shown: Shown,
    /// Whose document lists it.
    pub(crate) seen_by: Set,
    /// All have seen it for so long that a secondary may act on it.
    pub(crate) is_ripe: bool,
    /// Events that were in some documents only when this one was in all of them.
    pub(crate) spreading: Set,
    /// The time for its preparation is over, and with it the deadline of each of its hooks.
    pub(crate) is_due: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Shown {
    NotYet,
    Scheduled,
    /// By a post of ours.
    Approved,
    Gone,
    /// Gone after a post of ours.
    Done,
}

/// The property that is broken, by the name it has in `behaviour.md` 13.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
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
            is_fresh: false,
            stale: None,
            silence: Silence::Short,
            is_noticed: false,
            is_watched: false,
            spreading: Set::default(),
            journal: Set::default(),
            chosen: None,
            intent: None,
            account: None,
            sent: Set::default(),
        };
        let unseen = Sight {
            shown: Shown::NotYet,
            seen_by: Set::default(),
            is_ripe: false,
            spreading: Set::default(),
            is_due: false,
        };
        Self {
            log: Log {
                events: [Known::default(); MOST],
                voters: Set::first(cluster.replicas),
                suspects: Set::default(),
            },
            leader: 0,
            nodes: vec![node; cluster.replicas],
            cloud: vec![unseen; cluster.events.len()],
            wire: Set::default(),
            appended: None,
            faults: NONE,
            breach: None,
        }
    }

    pub(crate) fn is_connected(&self, replica: usize) -> bool {
        self.nodes[replica].is_up && !self.nodes[replica].is_cut && self.log.voters.contains(replica)
    }

    /// Enough voters reach each other to elect and to commit.
    pub(crate) fn has_quorum(&self) -> bool {
        (0..self.nodes.len()).filter(|replica| self.is_connected(*replica)).count() * 2 > self.log.voters.len()
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

    /// Its document lists it.
    pub(crate) fn sees(&self, replica: usize, event: usize) -> bool {
        self.cloud[event].seen_by.contains(replica)
    }

    /// Events that are in some documents only.
    pub(crate) fn spreading(&self) -> Set {
        let is_partly = |seen_by: Set| !seen_by.is_empty() && seen_by.len() < self.nodes.len();
        (0..self.cloud.len()).filter(|event| is_partly(self.cloud[*event].seen_by)).collect()
    }

    /// What a report of its document names.
    pub(crate) fn document(&self, replica: usize) -> Set {
        (0..self.cloud.len()).filter(|event| self.sees(replica, *event)).collect()
    }

    /// A hook of the event may run.
    pub(crate) fn may_run(&self, log: &Log, event: usize) -> bool {
        log.events[event].hook == Hook::Open && !self.cloud[event].is_due
    }

    /// Approved by us, and its member is not back.
    pub(crate) fn takes_its_member(&self, event: usize) -> bool {
        let known = &self.log.events[event];
        match self.cloud[event].shown {
            Shown::Approved => true,
            Shown::Done => known.hook != Hook::None && !known.is_closed,
            Shown::NotYet | Shown::Scheduled | Shown::Gone => false,
        }
    }

    pub(crate) fn broke(&mut self, breach: Breach) {
        self.breach = self.breach.or(Some(breach));
    }
}

impl Log {
    /// Taken up, and not over.
    pub(crate) fn is_open(&self, event: usize) -> bool {
        self.events[event].taken_up && !self.events[event].is_closed
    }
}
