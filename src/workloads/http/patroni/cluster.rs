//! What `GET /cluster` says, and what follows from it. Pure: members are found by the names of their VMs.

use serde::Deserialize;
use serde_json::Value;

use super::super::facts::Facts;
use crate::machine::id::VmName;
use crate::workloads::Ended;

/// A candidate that is further behind makes the switch wait for it, and so does what is put back.
const SMALL_LAG: u64 = 1 << 20;
const MAX_MEMBERS: usize = 100;

#[derive(Deserialize)]
pub(super) struct Cluster {
    members: Vec<Member>,
}

#[derive(Deserialize)]
struct Member {
    name: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    state: String,
    timeline: Option<u64>,
    /// Bytes, or a word where that is not known.
    #[serde(default)]
    lag: Value,
    api_url: Option<String>,
    #[serde(default)]
    tags: Value,
}

#[derive(PartialEq, Debug)]
pub(super) struct Switch {
    pub(super) leader: String,
    pub(super) candidate: String,
    /// Where the leader is asked; another member would take seconds longer.
    pub(super) leaders_api: Option<String>,
}

impl Cluster {
    pub(super) fn read(body: &str) -> Result<Self, String> {
        let cluster: Self =
            serde_json::from_str(body).map_err(|error| format!("its answer is not a cluster: {error}"))?;
        if cluster.members.len() > MAX_MEMBERS {
            return Err(format!("its cluster has more than {MAX_MEMBERS} members"));
        }
        Ok(cluster)
    }

    /// What a failover comes to, where it is not over already.
    pub(super) fn plan(&self, facts: &Facts) -> Result<Switch, Ended> {
        let vm = VmName::new(facts.text("vm"));
        // Where members are not named as their VMs are, nobody knows which of them to avoid.
        if self.member(&vm).is_none() {
            return Err(Ended::Failed(format!("no member of the Patroni cluster is named {vm}, as the VM is")));
        }
        let leader = self.leader().map_err(Ended::Blocked)?;
        if !is_going(leader, facts) {
            return Err(Ended::NotApplicable);
        }
        let candidate = self.candidate(leader, facts).map_err(Ended::Blocked)?;
        Ok(Switch {
            leader: leader.name.clone(),
            candidate: candidate.name.clone(),
            leaders_api: leader.api_url.clone(),
        })
    }

    /// The answer to `confirm`.
    pub(super) fn has_moved(&self, facts: &Facts) -> Ended {
        match self.leader() {
            Err(why) => Ended::Blocked(why),
            Ok(leader) if is_going(leader, facts) => Ended::NotDone,
            Ok(_) => Ended::Done,
        }
    }

    /// Once a switchover was made: `None` while the new leader is not seen.
    pub(super) fn moved_from(&self, former: &str, facts: &Facts) -> Option<Ended> {
        let leader = self.leader().ok().filter(|leader| leader.name != former)?;
        Some(if is_going(leader, facts) {
            Ended::Failed(format!("Patroni switched over to {}, which the event takes too", leader.name))
        } else {
            Ended::Done
        })
    }

    /// Whether the VM's member is whole again, or what it lacks.
    pub(super) fn rejoined(&self, facts: &Facts) -> Result<(), String> {
        let vm = VmName::new(facts.text("vm"));
        let member = self.member(&vm).ok_or_else(|| format!("{vm} is not in the Patroni cluster"))?;
        let leader = self.leader()?;
        if member.name == leader.name { Ok(()) } else { is_whole(member, leader) }
    }

    fn member(&self, vm: &VmName) -> Option<&Member> {
        self.members.iter().find(|member| VmName::new(&member.name) == *vm)
    }

    /// It says so only while it holds the leader's key.
    fn leader(&self) -> Result<&Member, String> {
        let is_leader = |member: &&Member| ["leader", "standby_leader"].contains(&member.role.as_str());
        let leader = self.members.iter().find(is_leader).filter(|leader| leader.state == "running");
        leader.ok_or_else(|| "the Patroni cluster has no leader now".to_owned())
    }

    /// The best of those that can take over, in the order in which they are preferred.
    fn candidate(&self, leader: &Member, facts: &Facts) -> Result<&Member, String> {
        let preferred: Vec<VmName> = facts.texts("prefer_vms").map(VmName::new).collect();
        let place = |member: &Member| {
            let name = VmName::new(&member.name);
            preferred.iter().position(|vm| *vm == name).unwrap_or(preferred.len())
        };
        // With synchronous replication nobody else is taken.
        let is_synchronous = |member: &Member| ["sync_standby", "quorum_standby"].contains(&member.role.as_str());
        let synchronous_only = self.members.iter().any(is_synchronous);
        let mut unfit = Vec::new();
        let mut fit: Vec<&Member> = Vec::new();
        for member in self.members.iter().filter(|member| member.name != leader.name) {
            let objection = if is_avoided(member, facts) {
                Err(format!("{} is on a VM to avoid", member.name))
            } else if synchronous_only && !is_synchronous(member) {
                Err(format!("{} is no synchronous standby", member.name))
            } else if member.never_leads() {
                Err(format!("{} is tagged never to lead", member.name))
            } else {
                is_whole(member, leader)
            };
            match objection {
                Ok(()) => fit.push(member),
                Err(why) => unfit.push(why),
            }
        }
        fit.sort_by_key(|member| (place(member), member.lag()));
        fit.first().copied().ok_or_else(|| match unfit.as_slice() {
            [] => "no standby to switch over to: the leader is alone".to_owned(),
            unfit => format!("no standby to switch over to: {}", unfit.join(", ")),
        })
    }
}

impl Member {
    fn lag(&self) -> Option<u64> {
        self.lag.as_u64()
    }

    fn never_leads(&self) -> bool {
        let tag = |name: &str| self.tags.get(name);
        tag("nofailover").and_then(Value::as_bool) == Some(true)
            || tag("failover_priority").and_then(Value::as_i64).is_some_and(|priority| priority <= 0)
    }
}

/// It follows the leader closely.
fn is_whole(member: &Member, leader: &Member) -> Result<(), String> {
    let name = &member.name;
    if member.state != "streaming" {
        return Err(format!("{name} is not streaming but {:?}", member.state));
    }
    if member.timeline.is_none() || member.timeline != leader.timeline {
        return Err(format!("{name} is not on the leader's timeline"));
    }
    match member.lag() {
        Some(lag) if lag <= SMALL_LAG => Ok(()),
        Some(lag) => Err(format!("{name} lags {lag} bytes behind")),
        None => Err(format!("how far {name} lags behind is not known")),
    }
}

/// The event names it.
fn is_going(member: &Member, facts: &Facts) -> bool {
    let name = VmName::new(&member.name);
    name == VmName::new(facts.text("vm")) || facts.texts("event_resources").any(|vm| VmName::new(vm) == name)
}

fn is_avoided(member: &Member, facts: &Facts) -> bool {
    let name = VmName::new(&member.name);
    is_going(member, facts) || facts.texts("avoid_vms").any(|vm| VmName::new(vm) == name)
}

#[cfg(test)]
#[path = "cluster_tests.rs"]
mod tests;
