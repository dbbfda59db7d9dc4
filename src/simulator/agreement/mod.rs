//! Agreement as the replicas need it: a log that a leader with a quorum appends to, elections with a vote before the
//! vote, contact by what was sent when, and reads by a round trip. Kept as small as it can be: no snapshots, no learners.

mod chain;
mod election;
mod reading;
mod replication;
mod standing;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

pub(super) use chain::Chain;
pub(super) use standing::Standing;

use super::tasks::Answer;
use crate::machine::command::{Entry, Verdict};
use crate::machine::time::Timestamp;

pub(super) const HEARTBEAT: Duration = Duration::from_millis(200);
const ELECTION_LEAST: u64 = 600;
const ELECTION_MOST: u64 = 1200;
/// A leader that was not heard for so long is none.
pub(super) const LEASE: Duration = Duration::from_millis(ELECTION_MOST);
/// Entries in one message.
const AT_ONCE: usize = 64;

/// What is on the disk. Position 1 is the first entry.
pub(super) struct Kept {
    pub(super) term: u64,
    pub(super) voted: Option<usize>,
    pub(super) log: Vec<Slot>,
    /// So much was known to be committed.
    pub(super) applied: usize,
    founders: Rc<Vec<usize>>,
    /// By the latest word on it in the log, committed or not.
    pub(super) voters: Rc<Vec<usize>>,
}

#[derive(Clone)]
pub(super) struct Slot {
    pub(super) term: u64,
    pub(super) what: Payload,
}

#[derive(Clone)]
pub(super) enum Payload {
    /// A leader begins.
    Blank,
    Entry(Rc<Entry>),
    /// Who votes from here on.
    Voters(Rc<Vec<usize>>),
}

#[derive(Clone)]
pub(super) struct Append {
    pub(super) term: u64,
    pub(super) previous: usize,
    pub(super) previous_term: u64,
    pub(super) entries: Vec<Slot>,
    pub(super) committed: usize,
    /// On the sender's steady clock.
    pub(super) sent: Timestamp,
}

#[derive(Clone)]
pub(super) struct Ballot {
    pub(super) term: u64,
    pub(super) last: (u64, usize),
    /// Only asks whether it would be granted.
    pub(super) is_pre: bool,
    /// The leader wants it.
    pub(super) is_transfer: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) enum Role {
    #[default]
    Follower,
    Candidate {
        is_pre: bool,
    },
    Leader,
}

/// What a process knows of agreement beside what is on its disk. Times are of its steady clock.
#[derive(Default)]
pub(super) struct Agreement {
    pub(super) role: Role,
    /// Whom it follows in this term.
    pub(super) leader: Option<usize>,
    pub(super) heard: Option<Timestamp>,
    pub(super) patience: Timestamp,
    /// Only the tick that was asked for last counts.
    pub(super) ticks: u32,
    pub(super) committed: usize,
    pub(super) applied: usize,
    pub(super) is_applying: bool,
    votes: BTreeSet<usize>,
    next: BTreeMap<usize, usize>,
    matched: BTreeMap<usize, usize>,
    /// When what each voter acknowledged last was sent.
    pub(super) acknowledged: BTreeMap<usize, Timestamp>,
    turns: standing::Turns,
    reads: Vec<reading::Read>,
    /// Who waits for what stands at a position, if it is of this term.
    waiting: BTreeMap<usize, (u64, Asker)>,
    pub(super) known: Standing,
}

/// Who is told what became of a proposal.
#[derive(Clone)]
pub(super) enum Asker {
    Here(Answer<Result<Verdict, ()>>),
    There { vm: usize, call: u64 },
}

impl Kept {
    pub(super) fn new(founders: Rc<Vec<usize>>) -> Self {
        Self { term: 0, voted: None, log: Vec::new(), applied: 0, voters: founders.clone(), founders }
    }

    fn term_at(&self, position: usize) -> u64 {
        if position == 0 { 0 } else { self.log.get(position - 1).map_or(0, |slot| slot.term) }
    }

    fn last(&self) -> (u64, usize) {
        (self.term_at(self.log.len()), self.log.len())
    }

    fn push(&mut self, slot: Slot) {
        if let Payload::Voters(voters) = &slot.what {
            self.voters = voters.clone();
        }
        self.log.push(slot);
    }

    fn truncate(&mut self, len: usize) {
        self.log.truncate(len);
        let word = self.log.iter().rev().find_map(|slot| match &slot.what {
            Payload::Voters(voters) => Some(voters.clone()),
            Payload::Blank | Payload::Entry(_) => None,
        });
        self.voters = word.unwrap_or_else(|| self.founders.clone());
    }

    /// So many of the voters are a quorum, if these are among them.
    fn is_quorum(&self, is_among: impl Fn(usize) -> bool) -> bool {
        self.voters.iter().filter(|voter| is_among(**voter)).count() * 2 > self.voters.len()
    }
}
