//! The hooks of an event that are not done: still to come, or missing at its start.

use crate::model::attempt::WaiverReason;
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase, Role, Workload};
use crate::schedule::affected_members::affected;
use crate::schedule::next_steps::may_prepare;
use crate::schedule::required;
use crate::schedule::step::Step;
use crate::schedule::step_state::{self, StepState};
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

/// The required hooks without a good outcome, while the event is under way. Empty after the approval of an operator: the
/// operator saw the skipped hooks. The hooks of a VM that was unreachable at an isolated approval are not missing, because
/// no replica could run these hooks. A failover is not missing if another member is the primary. A
/// failover given up with its unreachable replica is missing: the primary went down with its VM.
pub fn missing_hooks(state: &State, event: &Event) -> Vec<(Member, HookId)> {
    let is_chosen = event.is_approved_by_operator() || event.has_isolated_approval_of_operator();
    if event.stage() != Stage::Started || event.is_drill() || is_chosen {
        return Vec::new();
    }
    let steps = required::required_steps(state, event);
    let is_open =
        |step: &&Step<'_>| !step_state::is_satisfied(event, step, state.now) || is_waived_failover(event, step);
    let open = steps.iter().filter(is_open);
    let is_reached = |step: &&Step<'_>| {
        event.isolated_approvals.iter().all(|approval| !approval.out_of_reach.contains(&step.member.vm))
    };
    let missing = open
        .filter(is_reached)
        .filter(|step| step.id.phase != Phase::Failover || !has_moved(state, event, &step.member));
    missing.map(|step| (step.member.clone(), step.id)).collect()
}

/// Whether the failover was given up because no replica could run it.
fn is_waived_failover(event: &Event, step: &Step<'_>) -> bool {
    let waiver = event.waiver(&step.member, step.id);
    step.id.phase == Phase::Failover && waiver.is_some_and(|waiver| waiver.why == WaiverReason::Unreachable)
}

/// The hooks before the approval that have not begun yet, or not since an operator's retry, in the order of each workload.
pub fn hooks_to_come(state: &State, event: &Event) -> Vec<(Member, HookId)> {
    if event.stage() > Stage::Preparing || !may_prepare(event) {
        return Vec::new();
    }
    let has_begun = |step: &Step<'_>| {
        let retried = event.retried_after(&step.member, step.id);
        step.forward().any(|attempt| Some(attempt.id) > retried)
    };
    let is_to_come = |step: &Step<'_>| {
        !has_begun(step) && matches!(step_state::step_state(event, step, state.now), StepState::Due { .. })
    };
    let steps = required::required_steps(state, event).into_iter().filter(is_to_come);
    steps.map(|step| (step.member.clone(), step.id)).collect()
}

/// The hooks before the approval that began, and are due again: after a failure, an operator's retry, or the return of
/// their members.
pub fn hooks_due_again(state: &State, event: &Event) -> BTreeSet<(Member, HookId)> {
    if event.stage() > Stage::Preparing || !may_prepare(event) {
        return BTreeSet::new();
    }
    let has_begun = |step: &Step<'_>| event.forward_attempts_of(&step.member, step.id).next().is_some();
    let is_due = |step: &Step<'_>| {
        let due = step_state::step_state(event, step, state.now);
        matches!(due, StepState::Due { intent: Intent::Run, blocked: None, .. })
    };
    let steps = required::required_steps(state, event).into_iter().filter(|step| has_begun(step) && is_due(step));
    steps.map(|step| (step.member, step.id)).collect()
}

/// The members whose failover runs, or is still to run before the start of the event. A primary without such a failover goes
/// down with its VM.
pub fn failovers_left(state: &State, event: &Event, now: Timestamp) -> BTreeSet<Member> {
    let is_left = |step: &Step<'_>| match step_state::state_without_undo(event, step, now) {
        StepState::Running(_) => true,
        StepState::Due { .. } => may_prepare(event),
        StepState::Satisfied | StepState::Failed(_) | StepState::OutOfTime => false,
    };
    let failovers = required::required_steps(state, event).into_iter().filter(|step| step.id.phase == Phase::Failover);
    failovers.filter(is_left).map(|step| step.member).collect()
}

/// Whether a member of the group outside the event reports the primary.
fn has_moved(state: &State, event: &Event, member: &Member) -> bool {
    let mut own = affected(state, event).into_iter();
    let Some((_, workload)) = own.find(|(vm, workload)| workload.on(vm) == *member) else { return false };
    let is_of_group = |other: &Workload| other.group.is_some() && other.group == workload.group;
    state
        .workloads()
        .any(|(vm, other)| is_of_group(other) && !event.affects(vm) && state.role(&other.on(vm)) == Role::Primary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::attempt::Waiver;
    use crate::model::document::tests::announced;
    use crate::model::document::{Announcement, Status};
    use crate::model::id::{GroupName, VmName, WorkloadName};
    use crate::model::isolated_approval::{IsolatedApproval, RequestedBy};
    use crate::model::state::Replica;
    use crate::model::workload::{Hook, OnAbsent, Origin};
    use alloc::vec;

    /// An event of a VM with one hook, under treatment.
    fn with_hook(phase: Phase) -> (State, Event) {
        let vm = VmName::new("db-1");
        let pg = Workload {
            name: WorkloadName("pg".into()),
            group: None::<GroupName>,
            after: Vec::new(),
            hooks: vec![Hook::of(phase)],
            origin: Origin::Configured,
            on_absent: OnAbsent::Hold,
        };
        let mut state = State::default();
        state.replicas.insert(vm.clone(), Replica { workloads: vec![pg], ..Replica::default() }.into());
        let announcement = Announcement { resources: vec![vm.clone()], ..announced("e", Status::Scheduled) };
        let mut event = Event::first_seen_as(announcement, vm.clone(), Timestamp(0));
        event.treatment = Some(crate::policy::treatment_of(
            &crate::policy::Policy::default(),
            &event.announcement,
            core::slice::from_ref(&vm),
            Timestamp(0),
        ));
        (state, event)
    }

    #[test]
    fn a_failover_is_left_until_it_is_skipped_or_the_event_is_claimed() {
        let left = |event: &Event, state: &State| failovers_left(state, event, Timestamp(1)).len();
        let (state, event) = with_hook(Phase::Failover);
        assert_eq!(left(&event, &state), 1);
        let (member, hook) = hooks_to_come(&state, &event).remove(0);
        let mut claimed = event.clone();
        claimed.entered.push((Stage::Claimed, Timestamp(1)));
        assert_eq!(left(&claimed, &state), 0, "no hook begins any more");
        let why = WaiverReason::Skipped { who: "ada".into(), reason: "no standby".into() };
        let skipped = Event { waivers: vec![Waiver { member, hook, at: Timestamp(1), why }], ..event };
        assert_eq!(left(&skipped, &state), 0);
        let (state, event) = with_hook(Phase::Drain);
        assert_eq!(left(&event, &state), 0);
    }

    #[test]
    fn an_isolated_replica_misses_the_hooks_of_reachable_vms_alone() {
        let (state, event) = with_hook(Phase::Drain);
        let missing = |out_of_reach: &[&str], requested_by: Option<RequestedBy>| {
            let mut event = event.clone();
            event.entered.push((Stage::Started, Timestamp(1)));
            event.isolated_approvals = vec![IsolatedApproval {
                approver: VmName::new("db-0"),
                at: Timestamp(1),
                alone_since: Timestamp(0),
                out_of_reach: out_of_reach.iter().map(|vm| VmName::new(vm)).collect(),
                requested_by,
                outcome: None,
                recorded: None,
            }];
            missing_hooks(&state, &event).len()
        };
        assert_eq!(missing(&["db-2"], None), 1);
        assert_eq!(missing(&["db-1"], None), 0, "no replica could run the hook");
        let asked = RequestedBy { who: "ada".into(), reason: "seen".into() };
        assert_eq!(missing(&["db-2"], Some(asked)), 0, "the operator saw what is skipped");
    }
}
