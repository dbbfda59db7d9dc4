//! Members as shown to operators: whether each serves, since when not, because of which event, and which hooks are due.

use std::collections::BTreeMap;

use crate::clock::rfc3339;
use allclear_core::model::id::GroupName;
use allclear_core::model::slot::{Slot, SlotState};
use allclear_core::model::state::State;
use allclear_core::model::time::to_the_second;
use allclear_core::model::workload::{Member, Phase};
use allclear_core::planning_input::PlanningInput;
use allclear_core::schedule::restore::retried_at;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Without a quorum, the log does not learn of members whose replica is unreachable from here.
pub(super) fn all(state: &State, input: &PlanningInput) -> Vec<shown::MemberState> {
    let registered = state.workloads().map(|(vm, workload)| (workload.on(vm), workload.group.clone()));
    let out = state.slots.iter().map(|(member, slot)| (member.clone(), slot.group.clone()));
    let all: BTreeMap<Member, Option<GroupName>> = out.chain(registered).collect();
    let as_known = |(member, group): (Member, Option<GroupName>)| {
        let told = shown(state, &member, group);
        if is_known(input, &member) { told } else { unknown(told, &member, input) }
    };
    all.into_iter().map(as_known).collect()
}

fn is_known(input: &PlanningInput, member: &Member) -> bool {
    input.quorum || input.reaches(&member.vm)
}

/// The state of the member as known here, one of `MEMBER_STATES`.
pub fn state_word(state: &State, input: &PlanningInput, member: &Member) -> &'static str {
    if is_known(input, member) { state.member_state(member) } else { "unknown" }
}

/// The member without its last known state, which is old.
fn unknown(told: shown::MemberState, member: &Member, input: &PlanningInput) -> shown::MemberState {
    let since = input.peers.get(&member.vm).map(|contact| rfc3339(to_the_second(contact.since)));
    let owed = Some("a report of its replica, which is unreachable from here".into());
    shown::MemberState { state: "unknown".into(), since, by: None, owed, ..told }
}

fn shown(state: &State, member: &Member, group: Option<GroupName>) -> shown::MemberState {
    let slot = state.slots.get(member);
    let unreachable = state.replicas.get(&member.vm).and_then(|replica| replica.unreachable);
    let since = slot.map(|slot| slot.since).or(unreachable).or_else(|| state.not_serving_since(member));
    shown::MemberState {
        workload: member.workload.to_string(),
        vm: member.vm.to_string(),
        group: group.map(|group| group.to_string()),
        state: state.member_state(member).into(),
        since: since.map(rfc3339),
        by: slot.map(|slot| slot.by.to_string()),
        owed: slot.and_then(|slot| owed(state, member, slot)),
        asked: state.is_asked(member),
    }
}

fn owed(state: &State, member: &Member, slot: &Slot) -> Option<String> {
    match slot.state {
        SlotState::Leaving | SlotState::Out if slot.needs_restore => {
            Some("a restore, when no event keeps the member out of service".into())
        }
        SlotState::Leaving | SlotState::Out => None,
        SlotState::Gone => Some("another member of the group, because the VM of this member was deleted".into()),
        SlotState::Returning => Some(restore(state, member, slot)),
    }
}

fn restore(state: &State, member: &Member, slot: &Slot) -> String {
    if let Some(failing) = state.failing_return(member) {
        let why = failing.outcome.reason().unwrap_or_else(|| failing.outcome.as_str());
        let next = retried_at(state, member).map_or_else(String::new, |at| format!(" at {}", rfc3339(at)));
        return format!("{} failed and is retried{next}: {why}", state.hook_label(member, failing.hook));
    }
    let attempts = state.open_event(&slot.by).into_iter().flat_map(|event| &event.attempts);
    let mut own = attempts.filter(|it| it.member == *member && it.stint == slot.stint && it.hook.phase == Phase::Ready);
    if !slot.needs_restore || own.next().is_some() {
        return "the confirmation that the member is ready".into();
    }
    if state.is_unreachable(&member.vm) {
        return "a restore, when the replica of the member is back".into();
    }
    "a restore".into()
}
