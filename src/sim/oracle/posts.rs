//! Checks when an approval leaves its machine, and when the approval arrives at the platform.

use std::collections::BTreeSet;
use std::time::Duration;

use super::Posted;
use crate::cloud::{ApprovalEffect, Approver};
use crate::scenario::TriggerPoint;
use crate::verdict::Property;
use crate::world::World;
use allclear_core::model::document::{Announcement, EventType, Source};
use allclear_core::model::id::{AttemptId, EventId, GroupName, VmName};
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::operator::OperatorAction;
use allclear_core::model::slot::Slot;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Member, Phase};
use allclear_core::planning_input::PlanningInput;
use allclear_core::procedure::PostReason;

/// The maximum age of the Scheduled status when an isolated replica posts.
const LOOKED_WITHIN: Duration = Duration::from_secs(10);

impl World {
    pub(crate) fn judge_post(&self, vm: usize, event: &EventId, why: PostReason) {
        self.tell(|| format!("{} posts the approval of {event}: {why:?}", self.nodes[vm].name));
        self.come(&self.counts.posted, TriggerPoint::Post);
        let broken = match why {
            PostReason::Claim(claim) => self.wrong_with_claim(vm, event, claim),
            PostReason::LastResort(_) => Some((Property::S3, "no replica here uses a control plane")),
            PostReason::Isolated(at) => {
                self.counts.alone.set(self.counts.alone.get() + 1);
                self.wrong_with_takeover(vm, event, at)
            }
        };
        let is_again = {
            let mut judge = self.judge.borrow_mut();
            let is_again = judge.posts.iter().any(|posted| posted.event == *event);
            judge.posts.push(Posted { by: vm, event: event.clone(), why });
            is_again && !judge.is_disturbed
        };
        if let Some((property, what)) = broken {
            return self.broke(property, format!("{} posts the approval of {event}: {what}", self.nodes[vm].name));
        }
        if is_again && (self.effective() == 0 || self.judge.borrow().is_calm) {
            self.broke(Property::S2, format!("{event} is approved twice, though nothing went wrong"));
        }
    }

    /// S2 and S3: the claim is committed, was in force a moment ago, is posted once, and the event was seen as
    /// Scheduled since.
    fn wrong_with_claim(&self, vm: usize, event: &EventId, claim: AttemptId) -> Option<(Property, &'static str)> {
        let (judge, endpoints) = (self.judge.borrow(), self.endpoints.borrow());
        let made = judge.claims.get(&claim);
        let Some(made) = made.filter(|made| made.event == *event && made.approver == self.nodes[vm].name) else {
            return Some((Property::S3, "no such claim is committed"));
        };
        if judge.posts.iter().any(|posted| posted.why == PostReason::Claim(claim)) {
            return Some((Property::S2, "the same claim was posted before"));
        }
        if let Some((lapsed, stood)) = &made.lapsed {
            let stood = self.nodes[vm].body.borrow().stood - stood[vm];
            let since = self.now().0 - lapsed.0 - stood;
            if since > i64::try_from(self.scenario.timing.claim_lease.as_millis()).unwrap_or(0) {
                return Some((Property::S3, "its claim lapsed long ago"));
            }
        }
        if endpoints[vm].names(event).iter().any(|vm| !made.decided.contains(vm)) {
            return Some((Property::S10, "it names VMs for which nothing was decided"));
        }
        let is_seen = endpoints[vm].scheduled_at(event).is_some_and(|at| at >= made.at);
        (!is_seen).then_some((Property::S2, "it did not look whether the event is Scheduled since it was claimed"))
    }

    /// S2: the approval is in the journal, and was not accepted before.
    fn wrong_with_takeover(&self, vm: usize, event: &EventId, at: Timestamp) -> Option<(Property, &'static str)> {
        let journal = self.nodes[vm].journal.borrow();
        let entry = journal.iter().find(|entry| entry.approval.at == at && entry.announcement.id == *event);
        if entry.is_none_or(|entry| entry.approval.outcome.is_some()) {
            return Some((Property::S2, "its journal does not say so"));
        }
        let endpoints = self.endpoints.borrow();
        let is_seen = endpoints[vm].scheduled_at(event).is_some_and(|at| self.now().since(at) <= LOOKED_WITHIN);
        (!is_seen).then_some((Property::S2, "its endpoint does not show it as Scheduled"))
    }

    /// S5, at the moment before an isolated replica posts.
    pub(crate) fn judge_alone(&self, vm: usize, announced: &Announcement, input: &PlanningInput) {
        let node = &self.nodes[vm];
        let steady = node.steady(self.now());
        let takeover_after = self.scenario.timing.takeover_after;
        let heard = self.last_contact(vm).max(Some(node.body.borrow().awake_since));
        let is_silent = heard.is_none_or(|heard| steady.since(heard) >= takeover_after);
        let id = &announced.id;
        let may_run = || {
            // A stopped machine runs nothing, and does not know its delay when resumed.
            let nodes = self.nodes.iter().filter(|node| node.steady(self.now()) == self.now());
            let mut programs = nodes.flat_map(|node| node.programs.borrow().clone());
            programs.any(|(key, it)| key.0 == *id && it.is_running && it.task.hook.phase < Phase::Restore)
        };
        let log_time = input.isolated.as_ref().map_or(Timestamp(0), |alone| alone.log_time);
        let applied = node.agreement.borrow().applied;
        let known = self.chain.borrow().state(applied);
        let is_held = || {
            let of_event = known.open_event(id).and_then(|event| event.operator_records.last());
            [of_event, known.operator_records.last()].into_iter().flatten().any(|wish| match wish.what {
                OperatorAction::Hold { until, .. } | OperatorAction::Pause { until } => log_time < until,
                _ => false,
            })
        };
        let is_one_of_a_pair = node.kept.borrow().members.voters.len() == 2;
        let what = if !is_one_of_a_pair {
            "though the others may have a quorum"
        } else if announced.source != Source::User {
            "though no user asked for it"
        } else if announced.resources.contains(&node.name) {
            "though it takes its own VM away, the last one"
        } else if !is_silent || self.status(vm).quorum {
            "though it heard a leader, or slept, a moment ago"
        } else if may_run() {
            "while a hook of it runs"
        } else if is_held() {
            "though an operator holds it"
        } else {
            return;
        };
        self.broke(Property::S5, format!("{} approves {id} alone, {what}", node.name));
    }

    /// S4: the open events approved by replicas take no more members of a group out of service than `max_unavailable`.
    pub(crate) fn judge_arrival(&self, by: usize, event: &EventId, why: PostReason, approval: ApprovalEffect) {
        if approval != ApprovalEffect::Accepted || self.judge.borrow().is_forgotten {
            return;
        }
        let cloud = self.cloud.borrow();
        let Some(own) = cloud.event(event) else { return };
        if self.is_excused(event) {
            return;
        }
        let is_ours = |other: &&crate::cloud::PlatformEvent| {
            other.id != *event && other.ended.is_none() && matches!(other.accepted, Some((_, Approver::Vm(_))))
        };
        let others = cloud.events().iter().filter(is_ours).filter(|other| !self.is_excused(&other.id));
        let others: Vec<_> = others.collect();
        for group in self.groups_of(&own.plan.resources) {
            let members = self.members_of(&group);
            let taken: BTreeSet<&VmName> = others.iter().flat_map(|other| &other.plan.resources).collect();
            let taken: BTreeSet<&VmName> = taken.into_iter().filter(|vm| members.contains(vm)).collect();
            let own: BTreeSet<&VmName> = own.plan.resources.iter().filter(|vm| members.contains(vm)).collect();
            let together = taken.union(&own).count();
            let limit = usize::try_from(self.scenario.max_unavailable).unwrap_or(usize::MAX);
            if !taken.is_empty() && together > limit && !own.is_subset(&taken) {
                let by = &self.nodes[by].name;
                let what = format!("{by} has {event} approved ({why:?}), and {group} loses {together} members at once");
                self.broke(Property::S4, what);
            }
        }
    }

    /// An event that repairs members already out takes no further member out, and a brief freeze is only counted.
    pub(super) fn is_excused(&self, event: &EventId) -> bool {
        let state = self.chain.borrow().latest();
        let Some(event) = state.event(event) else { return false };
        let named = state.slots.iter().filter(|(member, _)| event.affects(&member.vm));
        let is_sick =
            |(member, slot): (&Member, &Slot)| !slot.was_fit || !state.is_fit_for(&event.announcement.id, member);
        let is_repair = event.is_user_initiated() && named.into_iter().all(is_sick);
        let takes_away = event.attempts.iter().any(|attempt| attempt.hook.phase.is_disruptive());
        let is_brief = event.announcement.duration.is_some_and(|duration| duration < Duration::from_secs(10));
        let is_freeze = event.announcement.kind == EventType::Freeze && is_brief && !takes_away;
        let is_started = event.entered_at(Stage::Started).is_some();
        is_repair || is_freeze || is_started || event.last_call_since.is_some() || !event.former_calls.is_empty()
    }

    fn groups_of(&self, vms: &[VmName]) -> BTreeSet<GroupName> {
        let places = vms.iter().filter_map(|name| self.vm(name));
        places.flat_map(|vm| self.nodes[vm].groups()).collect()
    }

    fn members_of(&self, group: &GroupName) -> BTreeSet<VmName> {
        // A replica with a deleted machine is no longer a member.
        let of_group = |vm: &usize| {
            let is_deleted = self.nodes[*vm].body.borrow().is_deleted;
            !is_deleted && self.nodes[*vm].groups().contains(group)
        };
        (0..self.nodes.len()).filter(of_group).map(|vm| self.nodes[vm].name.clone()).collect()
    }

    /// The number of approvals of this event that left a machine.
    pub(super) fn posts_of(&self, event: &EventId) -> usize {
        self.judge.borrow().posts.iter().filter(|posted| posted.event == *event).count()
    }
}
