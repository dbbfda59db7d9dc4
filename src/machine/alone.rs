//! What a replica that hears no leader knows beside what it has applied.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use super::apply::apply;
use super::command::Entry;
use super::document::{Announcement, Document};
use super::id::{EventId, VmName};
use super::situation::Channel;
use super::state::State;
use super::takeover::Journaled;
use super::time::Timestamp;

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Alone {
    /// Since when it hears no leader, and nobody it reaches tells of one.
    pub since: Timestamp,
    /// In the order of the configuration, this replica among them. Empty when it was removed.
    pub voters: Vec<VmName>,
    /// The voters that answer it.
    pub reached: BTreeMap<VmName, Peer>,
    /// What its endpoint says, as far as it is believed; `None` while its channel does not work.
    pub document: Option<Document>,
    /// Since when its documents have listed an event without a break.
    pub seen_since: BTreeMap<EventId, Timestamp>,
    /// The log's time carried on by a steady clock, never ahead of the cluster's: what the log dates is over by it.
    pub log_time: Timestamp,
    /// The entries of its log that it has not applied: the others may know that they are committed.
    pub tail: Vec<Entry>,
    /// What it did alone and the log may not know.
    pub journal: Vec<Journaled>,
}

/// What a replica answered to one which hears no leader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Peer {
    /// Whom it hears, perhaps itself; not the replica that asked, which has no quorum then.
    pub leader: Option<String>,
    /// With a healthy one it could approve as well.
    pub channel: Channel,
}

impl Alone {
    pub fn listed(&self, id: &EventId) -> Option<&Announcement> {
        self.document.as_ref()?.get(id)
    }

    /// The state if everything in its log were committed.
    pub fn furthest(&self, state: &State) -> State {
        let mut furthest = state.clone();
        for entry in &self.tail {
            apply(&mut furthest, entry);
        }
        furthest
    }

    /// Without this replica the other voter of a pair has no quorum either. The others of three or more may have one,
    /// and an isolated replica cannot know what they decide.
    pub fn is_one_of_a_pair(&self) -> bool {
        self.voters.len() == 2
    }

    /// The voters that do not answer `me`.
    pub fn out_of_reach(&self, me: &VmName) -> Vec<VmName> {
        self.voters.iter().filter(|name| *name != me && !self.reached.contains_key(*name)).cloned().collect()
    }
}
