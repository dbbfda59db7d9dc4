//! Hello calls of nodes outside the membership (new disks under a known name), and sign-offs of members.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A joining node sends a hello at least every two seconds.
const ASKED_WITHIN: Duration = Duration::from_secs(5);
/// Maximum number of recorded nodes per name. Two nodes are a conflict already.
const NODES_AT_MOST: usize = 4;

/// The replicas from which this replica received a hello.
#[derive(Default)]
pub(crate) struct JoinRequests(Mutex<HelloLog>);

#[derive(Default)]
struct HelloLog {
    asked: BTreeMap<String, BTreeMap<u64, Instant>>,
    signed_off: BTreeMap<u64, Instant>,
    removed: BTreeMap<String, Instant>,
}

impl JoinRequests {
    /// Records the hello of a node outside the membership, under a name of this cluster.
    pub(super) fn record_hello(&self, name: &str, node: u64, now: Instant) {
        let mut greeted = self.greeted();
        greeted.forget(now);
        let nodes = greeted.asked.entry(name.to_owned()).or_default();
        if nodes.len() < NODES_AT_MOST || nodes.contains_key(&node) {
            nodes.insert(node, now);
        }
    }

    /// The nodes with a recent hello, by name.
    pub(super) fn nodes(&self, now: Instant) -> BTreeMap<String, BTreeSet<u64>> {
        let mut greeted = self.greeted();
        greeted.forget(now);
        greeted.asked.iter().map(|(name, nodes)| (name.clone(), nodes.keys().copied().collect())).collect()
    }

    /// Records a call of a replica that an operator removed.
    pub(super) fn record_removed(&self, name: &str, now: Instant) {
        let mut greeted = self.greeted();
        greeted.forget(now);
        greeted.removed.insert(name.to_owned(), now);
    }

    /// The removed replicas with a recent call.
    pub(super) fn removed(&self, now: Instant) -> Vec<String> {
        let mut greeted = self.greeted();
        greeted.forget(now);
        greeted.removed.keys().cloned().collect()
    }

    /// Records the sign-off of a stopping member.
    pub(super) fn signs_off(&self, node: u64, now: Instant) {
        self.greeted().signed_off.insert(node, now);
    }

    /// The time at which each node signed off. The sign-offs of former members are dropped.
    pub(super) fn signed_off(&self, is_member: impl Fn(u64) -> bool) -> BTreeMap<u64, Instant> {
        let mut greeted = self.greeted();
        greeted.signed_off.retain(|node, _| is_member(*node));
        greeted.signed_off.clone()
    }

    fn greeted(&self) -> MutexGuard<'_, HelloLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HelloLog {
    fn forget(&mut self, now: Instant) {
        for nodes in self.asked.values_mut() {
            nodes.retain(|_, asked| now.saturating_duration_since(*asked) < ASKED_WITHIN);
        }
        self.asked.retain(|_, nodes| !nodes.is_empty());
        self.removed.retain(|_, called| now.saturating_duration_since(*called) < ASKED_WITHIN);
    }
}

/// The message for people about several nodes with the same name.
pub(super) fn contest_message(name: &str, nodes: &BTreeSet<u64>) -> String {
    let nodes: Vec<String> = nodes.iter().map(|node| format!("{node:x}")).collect();
    format!(
        "more than one replica runs as {name} (nodes {}), so the leader admits none; stop all but one",
        nodes.join(" and ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_is_known_for_a_while_and_a_crowd_under_one_name_takes_no_more_room_than_a_few() {
        let (askers, begun) = (JoinRequests::default(), Instant::now());
        let later = |span| begun + span;
        askers.record_hello("db-1", 7, begun);
        assert_eq!(askers.nodes(begun), [("db-1".to_owned(), BTreeSet::from([7]))].into());
        askers.record_hello("db-1", 7, later(ASKED_WITHIN / 2));
        assert_eq!(askers.nodes(later(ASKED_WITHIN)).len(), 1, "it asked again");
        assert_eq!(askers.nodes(later(ASKED_WITHIN * 2)), BTreeMap::new());
        for node in 0..100 {
            askers.record_hello("db-1", node, begun);
        }
        assert_eq!(askers.nodes(begun)["db-1"].len(), NODES_AT_MOST);
    }

    #[test]
    fn who_signed_off_is_known_for_as_long_as_it_is_a_member() {
        let (askers, begun) = (JoinRequests::default(), Instant::now());
        askers.signs_off(7, begun);
        assert_eq!(askers.signed_off(|_| true), BTreeMap::from([(7, begun)]));
        assert_eq!(askers.signed_off(|node| node != 7), BTreeMap::new());
        assert_eq!(askers.signed_off(|_| true), BTreeMap::new());
    }
}
