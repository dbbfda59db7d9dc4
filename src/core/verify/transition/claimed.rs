//! Whether a claim was justified at its entry (S1, S2 and S4), from the raw facts.

use alloc::vec::Vec;

use crate::model::attempt::{Attempt, Outcome};
use crate::model::claim::{Claim, PostOutcome, Reason};
use crate::model::document::{EventType, Source, Status};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::{VmName, WorkloadName};
use crate::model::isolated_approval::IsolatedApproval;
use crate::model::operator::{OperatorAction, OperatorRecord};
use crate::model::state::{Replica, State};
use crate::model::time::Timestamp;
use crate::model::treatment::{Action, Treatment};
use crate::model::workload::{Hook, Intent, Member, OnAbsent, OnFailure, Phase, Role, Workload};
use crate::verify::invariants::Violation;

pub(super) fn violated(before: &State, event: &Event, claim: &Claim) -> Option<Violation> {
    let lists = |replica: &Replica| replica.lists_event(&event.announcement.id) == Some(&Status::Scheduled);
    if !before.replicas.get(&claim.approver).is_some_and(|replica| lists(replica)) || event.over_at().is_some() {
        return Some(Violation::ClaimedUnprepared);
    }
    if claim.decided_at_revision != event.decided_at_revision {
        return Some(Violation::ClaimedUnprepared);
    }
    if event.claims.last().is_some_and(|last| last.outcome.is_none() && last.until > claim.at) {
        return Some(Violation::ClaimedTwice);
    }
    let mut told = event.claims.iter().filter(|earlier| may_be_told(earlier));
    let repeats =
        told.any(|earlier| earlier.decided_at_revision == claim.decided_at_revision && earlier.reason == claim.reason);
    if event.is_accepted() && !repeats {
        return Some(Violation::ClaimedTwice);
    }
    if repeats {
        return None;
    }
    if claim.reason != Reason::IsolatedApproval && is_halted(before, event, claim) {
        return Some(Violation::ClaimedAgainstWish);
    }
    (!is_justified(before, event, claim)).then_some(Violation::ClaimedUnprepared)
}

pub(super) fn may_be_told(claim: &Claim) -> bool {
    may_have_arrived(claim.outcome.as_ref())
}

/// Whether the platform may have accepted a post with this outcome.
fn may_have_arrived(outcome: Option<&(PostOutcome, Timestamp)>) -> bool {
    match outcome {
        None | Some((PostOutcome::Accepted | PostOutcome::Unknown(_), _)) => true,
        Some((PostOutcome::Refused(status), _)) => *status == 410 || *status >= 500,
        Some(_) => false,
    }
}

/// Whether the last hold without a release, or the last pause without a resume, is in force.
fn is_halted(before: &State, event: &Event, claim: &Claim) -> bool {
    let of_event = event
        .operator_records
        .iter()
        .rfind(|wish| matches!(wish.what, OperatorAction::Hold { .. } | OperatorAction::Release));
    let of_all = before
        .operator_records
        .iter()
        .rfind(|wish| matches!(wish.what, OperatorAction::Pause { .. } | OperatorAction::Resume));
    [of_event, of_all].into_iter().flatten().any(|wish| match wish.what {
        OperatorAction::Hold { until, .. } | OperatorAction::Pause { until } => claim.at < until,
        OperatorAction::Release
        | OperatorAction::Approve { .. }
        | OperatorAction::Resume
        | OperatorAction::Prepare { .. }
        | OperatorAction::Retry { .. }
        | OperatorAction::Restored(_)
        | OperatorAction::ClusterChange(_) => false,
    })
}

fn is_justified(before: &State, event: &Event, claim: &Claim) -> bool {
    let is_open = |takeover: &IsolatedApproval| may_have_arrived(takeover.outcome.as_ref());
    let Some(treatment) = &event.treatment else {
        // An isolated approval needs no policy for its repetition.
        return claim.reason == Reason::IsolatedApproval && event.isolated_approvals.iter().any(is_open);
    };
    let runs_failover = event.attempts.iter().any(|it| it.outcome.is_none() && it.hook.phase == Phase::Failover);
    let mut needed = needed(before, event, treatment);
    let prepares = treatment.action == Action::Prepare;
    match claim.reason {
        Reason::IsolatedApproval => event.isolated_approvals.iter().any(is_open),
        Reason::Policy | Reason::Operator if runs_failover => false,
        Reason::Policy => treatment.action == Action::Approve,
        Reason::Operator => {
            let decides = |wish: &&OperatorRecord| {
                matches!(wish.what, OperatorAction::Hold { .. } | OperatorAction::Approve { .. })
            };
            event
                .operator_records
                .iter()
                .rfind(decides)
                .is_some_and(|wish| matches!(wish.what, OperatorAction::Approve { .. }))
        }
        Reason::NothingToPrepare => prepares && needed.next().is_none(),
        Reason::BudgetSpent => {
            let is_spent = event.budget_ends().is_some_and(|ends| ends <= claim.at);
            prepares && is_spent && needed.all(|(member, id, hook)| !holds(before, event, &member, id, hook))
        }
        Reason::Prepared => prepares && needed.all(|(member, id, hook)| is_settled(before, event, &member, id, hook)),
    }
}

/// The effective workloads: a session replaces the configured workload of the same name, unless the session falls back
/// to the configured workload.
pub(super) fn effective(replica: &Replica) -> impl Iterator<Item = &Workload> {
    let is_away = |dialled: &Workload| replica.conditions.get(&dialled.name).is_some_and(|known| !known.connected);
    let stands_back = move |dialled: &Workload| {
        let has_another = replica.workloads.iter().any(|configured| configured.name == dialled.name);
        dialled.on_absent == OnAbsent::Command && is_away(dialled) && has_another
    };
    let stands = move |name: &WorkloadName| replica.sessions.get(name).is_some_and(|each| !stands_back(each));
    let configured = replica.workloads.iter().filter(move |configured| !stands(&configured.name));
    configured.chain(replica.sessions.values().filter(move |dialled| !stands_back(dialled)))
}

/// Every hook that the event requires.
pub(super) fn needed<'a>(
    before: &'a State,
    event: &'a Event,
    treatment: &'a Treatment,
) -> impl Iterator<Item = (Member, HookId, &'a Hook)> {
    let affected = before.replicas.iter().filter(|(vm, _)| event.announcement.resources.contains(vm));
    let workloads = affected.flat_map(|(vm, replica)| effective(replica).map(move |workload| (vm, workload)));
    let workloads = workloads.filter(|(vm, workload)| !is_passed_over(before, vm, workload));
    workloads.flat_map(move |(vm, workload)| {
        let member = Member { vm: vm.clone(), workload: workload.name.clone() };
        let phases = treatment.phases.iter().filter(|phase| **phase < Phase::Restore);
        phases
            .flat_map(|phase| workload.hooks_of(*phase))
            .filter(|(_, hook)| hook.event_types.is_empty() || hook.event_types.contains(&event.announcement.kind))
            .filter(|(_, hook)| event.announcement.kind != EventType::Freeze || is_worth_it(event, treatment, hook))
            .filter(|(id, hook)| has_time(event, treatment, hook) || event.attempts_of(&member, *id).count() > 0)
            .filter(|(id, _)| id.phase != Phase::Failover || is_primary(before, event, vm, workload))
            .map(|(id, hook)| (member.clone(), id, hook))
            .collect::<Vec<_>>()
    })
}

/// Whether the session workload is disconnected and registered with `OnAbsent::Skip`.
fn is_passed_over(before: &State, vm: &VmName, workload: &Workload) -> bool {
    let is_away = before.replicas.get(vm).and_then(|replica| replica.conditions.get(&workload.name));
    workload.is_session() && workload.on_absent == OnAbsent::Skip && is_away.is_some_and(|known| !known.connected)
}

fn has_time(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    let notice = event.notice_ends().0.saturating_sub(event.preparation_starts().0);
    let needed = hook.worst.unwrap_or(hook.timeout) + treatment.margin;
    !hook.optional_if_short || i128::from(notice) >= i128::try_from(needed.as_millis()).unwrap_or(i128::MAX)
}

/// Whether the workload counts as primary: a replica only after its failover was begun; an unknown role unless another
/// affected member is the known primary.
fn is_primary(before: &State, event: &Event, vm: &VmName, workload: &Workload) -> bool {
    let role = |vm: &VmName, name: &WorkloadName| {
        before.replicas.get(vm).and_then(|replica| replica.conditions.get(name)).map_or(Role::Unknown, |it| it.role)
    };
    let is_begun = event.attempts.iter().any(|attempt| {
        attempt.hook.phase == Phase::Failover && attempt.member.vm == *vm && attempt.member.workload == workload.name
    });
    // Stopped by its own hooks without a failover: the member was no primary, and no longer tells its role.
    let stint =
        before.slots.iter().find(|(of, _)| of.vm == *vm && of.workload == workload.name).map(|(_, it)| it.stint);
    let has_left = event.attempts.iter().any(|attempt| {
        let is_own = attempt.member.vm == *vm && attempt.member.workload == workload.name;
        let is_later = matches!(attempt.hook.phase, Phase::Drain | Phase::Shutdown) && attempt.intent == Intent::Run;
        let has_run = !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)));
        is_own && is_later && has_run && Some(attempt.stint) == stint
    });
    let affected = before.replicas.iter().filter(|(vm, _)| event.announcement.resources.contains(vm));
    let mut others = affected.flat_map(|(vm, replica)| effective(replica).map(move |other| (vm, other)));
    let is_led = workload.group.is_some()
        && others.any(|(vm, other)| other.group == workload.group && role(vm, &other.name) == Role::Primary);
    match role(vm, &workload.name) {
        Role::Primary => true,
        Role::Unknown => is_begun || !(is_led || has_left),
        Role::Replica => is_begun,
    }
}

fn is_worth_it(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    match (hook.min_freeze, event.announcement.duration) {
        (None, _) => !treatment.only_named_freezes,
        (Some(_), None) => true,
        (Some(least), Some(duration)) => duration >= least || duration.as_secs() >= 10,
    }
}

pub(super) fn is_waived(event: &Event, member: &Member, id: HookId) -> bool {
    event.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == id)
}

/// The attempts that count: of a disruptive hook the attempts of the present stint, for any event.
fn counting<'a>(before: &'a State, event: &'a Event, member: &Member, id: HookId) -> Vec<&'a Attempt> {
    let of_hook =
        |attempt: &&Attempt| attempt.hook == id && attempt.member == *member && attempt.intent != Intent::Undo;
    if id.phase == Phase::Checkpoint {
        return event.attempts.iter().filter(of_hook).collect();
    }
    let Some(slot) = before.slots.get(member) else { return Vec::new() };
    let all = before.open_events().flat_map(|event| &event.attempts).filter(of_hook);
    let mut found: Vec<&Attempt> = all.filter(|attempt| attempt.stint == slot.stint).collect();
    found.sort_by_key(|attempt| attempt.id);
    found
}

fn last_outcome<'a>(before: &'a State, event: &'a Event, member: &Member, id: HookId) -> Option<&'a Outcome> {
    let all = counting(before, event, member, id);
    // A hook done for one event is done for all events of the stint.
    let outcomes = || all.iter().rev().filter_map(|attempt| attempt.outcome.as_ref()).map(|(outcome, _)| outcome);
    let own = all.iter().rev().find(|attempt| event.attempt(attempt.id).is_some());
    let own = own.and_then(|attempt| attempt.outcome.as_ref()).map(|(outcome, _)| outcome);
    outcomes().find(|outcome| outcome.is_favourable()).filter(|_| own.is_none_or(|own| !own.is_favourable())).or(own)
}

/// The member was sick when a user requested the event (R3b). A reachable primary serves, whatever its hooks say.
fn is_excused(before: &State, event: &Event, member: &Member) -> bool {
    let is_there = !before.is_unreachable(&member.vm) && before.not_serving_since(member).is_none();
    let serves = is_there && before.role(member) == Role::Primary;
    let was_sick = before.slots.get(member).is_some_and(|slot| !slot.was_fit);
    event.announcement.source == Source::User && was_sick && !serves
}

fn is_settled(before: &State, event: &Event, member: &Member, id: HookId, hook: &Hook) -> bool {
    let may_fail = hook.on_failure == OnFailure::Continue || is_excused(before, event, member);
    let favourable = |outcome: &Outcome| match outcome {
        Outcome::Done | Outcome::NotApplicable => true,
        Outcome::NotDone
        | Outcome::Failed(_)
        | Outcome::TimedOut(_)
        | Outcome::Cancelled
        | Outcome::Unknown(_)
        | Outcome::Blocked(_) => may_fail,
    };
    is_waived(event, member, id) || last_outcome(before, event, member, id).is_some_and(favourable)
}

/// The hook has failed, was not done since, and its `on_failure` setting holds the event: beyond the budget, there is no
/// time for another attempt.
fn holds(before: &State, event: &Event, member: &Member, id: HookId, hook: &Hook) -> bool {
    let has_failed = |attempt: &&Attempt| {
        let is_own = event.attempt(attempt.id).is_some();
        is_own && attempt.intent == Intent::Run && matches!(attempt.outcome, Some((Outcome::Failed(_), _)))
    };
    hook.on_failure == OnFailure::Hold
        && !is_excused(before, event, member)
        && !is_waived(event, member, id)
        && counting(before, event, member, id).iter().any(has_failed)
        && !last_outcome(before, event, member, id).is_some_and(Outcome::is_favourable)
}
