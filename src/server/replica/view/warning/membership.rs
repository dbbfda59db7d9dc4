//! Warnings about unfinished changes of an operator: a removed replica with a process or an entry in the configuration,
//! and a group with a single member.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::clock::rfc3339;
use crate::cluster::ClusterHandle;
use allclear_core::model::id::{GroupName, VmName};
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Member;
use allclear_core::schedule::groups::single_member_groups;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The times at which this replica first showed a warning, for warnings without a recorded beginning.
#[derive(Default)]
pub(in crate::view) struct FirstShown(Mutex<BTreeMap<String, Timestamp>>);

impl FirstShown {
    /// The warnings of these texts. A text that is missing now begins anew.
    pub(in crate::view) fn warnings(&self, texts: Vec<String>, now: Timestamp) -> Vec<shown::Warning> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|text, _| texts.contains(text));
        let mut warning = |text: String| {
            let since = rfc3339(*known.entry(text.clone()).or_insert(now));
            shown::Warning { since, text, event: String::new() }
        };
        texts.into_iter().map(&mut warning).collect()
    }
}

/// A replica that an operator removed, with the remains.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::view) struct HalfRemoved {
    name: VmName,
    /// The removal did not finish.
    is_member: bool,
    is_configured: bool,
    still_runs: bool,
}

/// The removed replicas that are still members, or in the configuration of this replica, or called recently.
pub(in crate::view) fn half_removed(cluster: &ClusterHandle) -> Vec<HalfRemoved> {
    let members = cluster.consensus.members();
    let members: Vec<VmName> = members.voters.iter().chain(&members.learners).map(|name| VmName::new(name)).collect();
    let callers: Vec<VmName> = cluster.consensus.removed_callers().iter().map(|name| VmName::new(name)).collect();
    left_of(&cluster.state(), &members, &cluster.node.configured, &callers)
}

fn left_of(state: &State, members: &[VmName], configured: &[VmName], callers: &[VmName]) -> Vec<HalfRemoved> {
    let left = state.excluded.iter().map(|name| HalfRemoved {
        name: name.clone(),
        is_member: members.contains(name),
        is_configured: configured.contains(name),
        still_runs: callers.contains(name),
    });
    left.filter(|left| left.is_member || left.is_configured || left.still_runs).collect()
}

impl HalfRemoved {
    /// The text of the warning on this replica.
    pub(in crate::view) fn text(&self, me: &VmName) -> String {
        let name = &self.name;
        if self.is_member {
            return format!(
                "an operator removed {name} from the cluster, but the removal did not finish, and {name} is still a member \
                 that gets no vote back: repeat `allclear member remove {name}`, or let it in again with \
                 `allclear member add {name} ADDRESS`"
            );
        }
        if *name == *me {
            return format!(
                "an operator removed {name} from the cluster, and {name} still runs: stop its replica for good, or let \
                 it in again with `allclear member add {name} ADDRESS`"
            );
        }
        let runs = format!("the replica on {name} still runs, and calls the others");
        let listed = format!("cluster.replicas of {me} still lists {name}");
        let (what, remedy) = match (self.is_configured, self.still_runs) {
            (true, true) => (format!("{listed}, and {runs}"), "stop that replica, remove it from cluster.replicas on"),
            (true, false) => (listed, "remove it from cluster.replicas on"),
            (false, _) => (runs, "stop that replica, and check that cluster.replicas does not list it on"),
        };
        format!(
            "an operator removed {name} from the cluster, but {what}: {remedy} every replica, or let it in again with \
             `allclear member add {name} ADDRESS`"
        )
    }
}

/// The texts of the warnings about groups with a single member.
pub(in crate::view) fn single_members(state: &State, replicas: &[VmName]) -> Vec<String> {
    let single_members = single_member_groups(state, replicas);
    let others = |group: &GroupName| {
        let mut others: Vec<String> = state
            .workloads()
            .filter_map(|(_, workload)| workload.group.as_ref())
            .filter(|other| *other != group)
            .map(ToString::to_string)
            .collect();
        others.sort_unstable();
        others.dedup();
        others
    };
    let text = |(group, member): &(GroupName, Member)| {
        let others = others(group);
        let others = if others.is_empty() { "there is no other group".into() } else { others.join(", ") };
        format!(
            "group {group} has a single member, {member}: no other member can take over, and no limit protects it. \
             Compare the spelling of `group` on all replicas (other groups: {others}), or leave `group` out"
        )
    };
    single_members.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<VmName> {
        text.split_whitespace().map(VmName::new).collect()
    }

    #[test]
    fn a_removed_replica_is_told_while_it_is_configured_or_runs() {
        let state = State { excluded: names("db-2"), ..State::default() };
        let told = |members: &str, configured: &str, callers: &str| {
            let left = left_of(&state, &names(members), &names(configured), &names(callers));
            left.iter().map(|left| left.text(&VmName::new("db-0"))).collect::<Vec<_>>()
        };
        let all = "db-0 db-1 db-2";
        assert_eq!(told("db-0 db-1", "db-0 db-1", ""), [""; 0]);
        let [unfinished] = &told(all, all, "")[..] else { panic!("one warning") };
        assert!(unfinished.contains("the removal did not finish"), "{unfinished}");
        let [listed] = &told("db-0 db-1", "db-0 db-1 DB-2", "")[..] else { panic!("one warning") };
        assert!(listed.contains("but cluster.replicas of db-0 still lists db-2: remove it from"), "{listed}");
        let [runs] = &told("db-0 db-1", "db-0 db-1", "db-2")[..] else { panic!("one warning") };
        assert!(
            runs.contains("but the replica on db-2 still runs, and calls the others: stop that replica, and check"),
            "{runs}"
        );
        assert!(told("db-0 db-1", all, "db-2")[0].contains("still lists db-2, and the replica on db-2 still runs"));
    }

    #[test]
    fn a_warning_has_one_beginning_until_it_is_gone() {
        let (shown, text) = (FirstShown::default(), || vec!["one".to_owned()]);
        let since = |texts, at| shown.warnings(texts, Timestamp(at)).into_iter().map(|it| it.since).collect::<Vec<_>>();
        assert_eq!(since(text(), 1_000), [rfc3339(Timestamp(1_000))]);
        assert_eq!(since(text(), 2_000), [rfc3339(Timestamp(1_000))]);
        assert_eq!(since(Vec::new(), 3_000), [""; 0]);
        assert_eq!(since(text(), 4_000), [rfc3339(Timestamp(4_000))]);
    }
}
