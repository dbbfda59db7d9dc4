//! One view of a Patroni cluster, and the decisions from the view. Pure: no request is made here.

use std::collections::BTreeMap;

use super::cluster::{PatroniCluster, PatroniMember};
use super::names::{MemberVms, missing};
use super::status::PatroniStatus;
use crate::hooks::HookOutcome;
use crate::hooks::http::facts::Facts;
use allclear_core::model::id::VmName;

/// The limit for candidates, because a larger lag delays the switchover, and for rejoined members. In bytes.
const SMALL_LAG: u64 = 1 << 20;

pub(super) struct PatroniView {
    pub(super) cluster: PatroniCluster,
    /// The leader's own status; `None` without an answer.
    pub(super) leader: Option<PatroniStatus>,
    /// Statuses of members by name, where `/cluster` is incomplete.
    pub(super) others: BTreeMap<String, PatroniStatus>,
}

/// A possible switchover.
#[derive(PartialEq, Debug)]
pub(super) struct Switchover {
    pub(super) leader: String,
    /// The best candidate first; never empty.
    pub(super) candidates: Vec<String>,
    /// The reasons why the other members are no candidates.
    pub(super) unfit: Vec<String>,
    /// The leader's address for the request; another member would take seconds longer.
    pub(super) leaders_api: Option<String>,
    /// The start time of the leader's PostgreSQL.
    pub(super) started: Option<String>,
}

impl PatroniView {
    pub(super) fn plan(&self, facts: &Facts, names: &MemberVms) -> Result<Switchover, HookOutcome> {
        let vm = VmName::new(facts.text("vm"));
        // Without the VM's own member the members to avoid are unknown.
        if self.member_on(&vm, names).is_none() {
            let why = "name each member and its VM in `members` of the hook, unless the names are equal";
            return Err(HookOutcome::Failed(format!("no member of the Patroni cluster is on {vm}: {why}")));
        }
        let leader = self.cluster.leader().map_err(HookOutcome::Blocked)?;
        if !names.is_going(&leader.name, facts).map_err(HookOutcome::Failed)? {
            return Err(HookOutcome::NotApplicable);
        }
        let (candidates, unfit) = self.candidates(leader, facts, names);
        if candidates.is_empty() {
            return Err(HookOutcome::Blocked(nobody(&unfit)));
        }
        Ok(Switchover {
            leader: leader.name.clone(),
            candidates: candidates.into_iter().map(|member| member.name.clone()).collect(),
            unfit,
            leaders_api: leader.api_url.clone(),
            started: self.started(),
        })
    }

    /// The answer to `confirm`.
    pub(super) fn has_moved(&self, facts: &Facts, names: &MemberVms) -> HookOutcome {
        match self.cluster.leader().and_then(|leader| names.is_going(&leader.name, facts)) {
            Err(why) => HookOutcome::Blocked(why),
            Ok(true) => HookOutcome::NotDone,
            Ok(false) => HookOutcome::Done,
        }
    }

    /// The outcome after a switchover; `None` while no other leader is visible.
    pub(super) fn moved_from(&self, former: &str, facts: &Facts, names: &MemberVms) -> Option<HookOutcome> {
        let leader = self.cluster.leader().ok().filter(|leader| leader.name != former)?;
        Some(match names.is_going(&leader.name, facts) {
            Ok(false) => HookOutcome::Done,
            Ok(true) => HookOutcome::Failed(format!(
                "Patroni switched over to {}, and the event affects that VM too",
                leader.name
            )),
            Err(why) => HookOutcome::Failed(format!("Patroni switched over to {}: {why}", leader.name)),
        })
    }

    /// The start time of the leader's PostgreSQL.
    pub(super) fn started(&self) -> Option<String> {
        self.leader.as_ref()?.started.clone()
    }

    pub(super) fn member_on(&self, vm: &VmName, names: &MemberVms) -> Option<&PatroniMember> {
        self.cluster.members.iter().find(|member| names.vm_of(&member.name).as_ref() == Some(vm))
    }

    /// Checks that the member streams on the leader's timeline with a small lag; an error names the problem.
    pub(super) fn follows(&self, member: &PatroniMember, leader: &PatroniMember) -> Result<(), String> {
        let (name, word) = (&member.name, self.others.get(&member.name));
        match member.state.as_str() {
            "streaming" => {}
            // The clients of a standby cluster were promised nothing that an archive could lack, and a member that
            // never leads may follow the archive alone.
            "in archive recovery" if leader.is_standby_leader() || member.never_leads() => {}
            // Before 3.0.4 a streaming member has only the state "running".
            "running" if self.leader.as_ref().and_then(|leader| leader.sends_to(name)) != Some(false) => {}
            "running" if member.is_cascading() => {}
            "running" => return Err(format!("{name} is running, and does not stream from the leader")),
            state => return Err(format!("{name} is not streaming, but in the state {state:?}")),
        }
        let timeline = member.timeline().or_else(|| word?.timeline);
        let leaders = leader.timeline().or_else(|| self.leader.as_ref()?.timeline);
        match (timeline, leaders) {
            (Some(timeline), Some(leaders)) if timeline == leaders => {}
            (Some(_), Some(_)) => return Err(format!("{name} is not on the leader's timeline")),
            // The leader of a standby cluster may not know its own timeline.
            (Some(_), None) if leader.is_standby_leader() => {}
            _ => return Err(format!("the timeline of {name} or of the leader is unknown")),
        }
        match self.lag_of(member) {
            _ if member.lives_on_the_archive() => Ok(()),
            Some(lag) if lag <= SMALL_LAG => Ok(()),
            Some(lag) => Err(format!("{name} lags {lag} bytes behind")),
            None => Err(format!("the lag of {name} is unknown")),
        }
    }

    /// The lag in `/cluster`, or else from the statuses of both members.
    fn lag_of(&self, member: &PatroniMember) -> Option<u64> {
        member.lag().or_else(|| {
            let leader = self.leader.as_ref()?.position?;
            Some(leader.saturating_sub(self.others.get(&member.name)?.position?))
        })
    }

    /// The candidates in order of preference, and the reasons against the other members.
    fn candidates<'a>(
        &'a self,
        leader: &'a PatroniMember,
        facts: &Facts,
        names: &MemberVms,
    ) -> (Vec<&'a PatroniMember>, Vec<String>) {
        let preferred: Vec<VmName> = facts.texts("prefer_vms").map(VmName::new).collect();
        let place = |member: &PatroniMember| {
            let vm = names.vm_of(&member.name);
            preferred.iter().position(|it| Some(it) == vm.as_ref()).unwrap_or(preferred.len())
        };
        // With synchronous replication only synchronous members are candidates. A standby cluster has none, and some
        // versions still call formerly synchronous members synchronous there.
        let synchronous_only =
            !leader.is_standby_leader() && self.cluster.members.iter().any(PatroniMember::is_synchronous);
        let (mut fit, mut unfit) = (Vec::new(), Vec::new());
        for member in self.cluster.followers(leader) {
            let name = &member.name;
            let objection = match names.is_avoided(name, facts) {
                Err(why) => Err(why),
                Ok(true) => Err(format!("{name} is on a VM to avoid")),
                Ok(false) if synchronous_only && !member.is_synchronous() => {
                    Err(format!("{name} is not a synchronous standby"))
                }
                Ok(false) if member.never_leads() => Err(format!("a tag excludes {name} from leadership")),
                Ok(false) => self.follows(member, leader),
            };
            match objection {
                Ok(()) => fit.push(member),
                Err(why) => unfit.push(why),
            }
        }
        fit.sort_by_key(|member| (place(member), self.lag_of(member)));
        (fit, unfit)
    }

    /// Members with missing data in `/cluster` that their own statuses contain.
    pub(super) fn doubtful(&self) -> Vec<&PatroniMember> {
        let Ok(leader) = self.cluster.leader() else { return Vec::new() };
        let is_open = |member: &&PatroniMember| {
            let is_up = ["running", "streaming", "in archive recovery"].contains(&&*member.state);
            is_up && (member.lag().is_none() || member.timeline().is_none())
        };
        self.cluster.followers(leader).filter(is_open).collect()
    }

    /// Whether the VM's member has rejoined; an error names the problem. The leader's WAL up to `target` must have
    /// arrived on the member.
    pub(super) fn rejoined(&self, facts: &Facts, names: &MemberVms, target: Option<u64>) -> Result<(), String> {
        let vm = VmName::new(facts.text("vm"));
        let member =
            self.member_on(&vm, names).ok_or_else(|| format!("no member of the Patroni cluster is on {vm}"))?;
        let leader = self.cluster.leader()?;
        if names.vm_of(&leader.name).is_none() {
            return Err(missing(&leader.name));
        }
        if member.name == leader.name {
            return Ok(());
        }
        self.follows(member, leader)?;
        match (self.others.get(&member.name).and_then(|word| word.position), target) {
            (Some(position), Some(target)) if position < target && !member.lives_on_the_archive() => {
                Err(format!("{} has not received {} bytes yet", member.name, target - position))
            }
            _ => Ok(()),
        }
    }
}

/// The reason for a missing candidate.
pub(super) fn nobody(unfit: &[String]) -> String {
    match unfit {
        [] => "no standby for a switchover: the leader has no standby".to_owned(),
        unfit => format!("no standby for a switchover: {}", unfit.join(", ")),
    }
}

#[cfg(test)]
mod tests;
