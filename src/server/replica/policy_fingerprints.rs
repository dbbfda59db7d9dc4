//! Compares the policies and groups of all replicas. The policy of the leader counts, so where replicas differ, the
//! treatment of an event changes with the leader. Of different limits of a group the smallest counts.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use ring::digest::{SHA256, digest};

use super::clock;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Group;
use allclear_core::policy::Policy;

/// The bytes of a fingerprint.
const TOLD: usize = 8;

/// The fingerprint of a policy and of groups in any order, comparable between programs of the same version.
pub fn fingerprint(policy: &Policy, groups: &[Group]) -> String {
    let groups: BTreeMap<_, _> = groups.iter().map(|group| (&group.name, group.max_unavailable)).collect();
    let digest = digest(&SHA256, format!("{policy:?} {groups:?}").as_bytes());
    BASE64_STANDARD.encode(&digest.as_ref()[..TOLD])
}

/// The fingerprint of each replica's policy.
pub type Fingerprints = BTreeMap<VmName, String>;

/// The knowledge of a replica about all replicas' fingerprints.
#[derive(Default)]
pub struct PolicyFingerprints {
    known: Mutex<KnownFingerprints>,
}

#[derive(Default)]
struct KnownFingerprints {
    of: Fingerprints,
    differ_since: Option<Timestamp>,
}

impl PolicyFingerprints {
    /// Records, as the leader, the fingerprint of a replica.
    pub fn record_fingerprint(&self, replica: &VmName, fingerprint: String) {
        let mut known = self.lock();
        known.of.insert(replica.clone(), fingerprint);
        known.judge();
    }

    /// Records the leader's reply.
    pub fn record_leader_view(&self, all: Fingerprints) {
        let mut known = self.lock();
        known.of = all;
        known.judge();
    }

    pub fn known(&self) -> Fingerprints {
        self.lock().of.clone()
    }

    /// The beginning of the difference, by this machine's wall clock, and the replicas without the most common
    /// fingerprint; `None` while all fingerprints are the same.
    pub fn odd_ones(&self) -> Option<(Timestamp, Vec<VmName>)> {
        let known = self.lock();
        let mut by_policy: BTreeMap<&String, Vec<VmName>> = BTreeMap::new();
        for (name, fingerprint) in &known.of {
            by_policy.entry(fingerprint).or_default().push(name.clone());
        }
        let most = by_policy.values().max_by_key(|names| names.len())?.clone();
        let odd = known.of.keys().filter(|name| !most.contains(name)).cloned().collect();
        Some((known.differ_since?, odd))
    }

    fn lock(&self) -> MutexGuard<'_, KnownFingerprints> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KnownFingerprints {
    fn judge(&mut self) {
        let differ = self.of.values().collect::<BTreeSet<_>>().len() > 1;
        self.differ_since = differ.then(|| self.differ_since.unwrap_or_else(clock::now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::id::GroupName;

    #[test]
    fn whose_policy_is_another_one_is_told_until_it_is_the_same() {
        let policies = PolicyFingerprints::default();
        let names = ["a", "b", "c"].map(VmName::new);
        for name in &names {
            assert_eq!(policies.odd_ones(), None);
            policies.record_fingerprint(name, fingerprint(&Policy::default(), &[]));
        }
        let other = Policy { margin: std::time::Duration::from_secs(7), ..Policy::default() };
        policies.record_fingerprint(&names[1], fingerprint(&other, &[]));
        assert_eq!(policies.odd_ones().map(|(_, odd)| odd), Some(vec![names[1].clone()]));
        policies.record_fingerprint(&names[1], fingerprint(&Policy::default(), &[]));
        assert_eq!(policies.odd_ones(), None);
    }

    #[test]
    fn groups_are_part_of_it_in_whichever_order_they_are_written() {
        let group = |name: &str, max_unavailable| Group { name: GroupName(name.into()), max_unavailable };
        let of = |groups: &[Group]| fingerprint(&Policy::default(), groups);
        let (orders, carts) = (group("orders", 1), group("carts", 2));
        assert_eq!(of(&[orders.clone(), carts.clone()]), of(&[carts.clone(), orders.clone()]));
        assert_ne!(of(&[orders.clone(), carts]), of(&[orders.clone(), group("carts", 3)]));
        assert_ne!(of(&[orders]), of(&[]));
    }
}
