//! Whether a claim could be made when it was made (S1, S2 and S4), from the raw facts.

use alloc::vec::Vec;

use super::last_outcome;
use crate::machine::attempt::{Attempt, Outcome};
use crate::machine::claim::{Claim, PostOutcome, Reason};
use crate::machine::document::{Kind, Source, Status};
use crate::machine::event::Event;
use crate::machine::id::{VmName, WorkloadName};
use crate::machine::invariants::Broken;
use crate::machine::lifecycle::Stage;
use crate::machine::operator::{What, Wish};
use crate::machine::policy::{Action, Treatment};
use crate::machine::state::{Replica, State};
use crate::machine::takeover::Takeover;
use crate::machine::workload::{Hook, HookId, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Role, Workload};

pub(super) fn violated(before: &State, event: &Event, claim: &Claim) -> Option<Broken> {
    let lists = |replica: &Replica| replica.lists(&event.announcement.id) == Some(&Status::Scheduled);
    if !before.replicas.get(&claim.approver).is_some_and(|replica| lists(replica)) || event.over_at().is_some() {
        return Some(Broken::ClaimedUnprepared);
    }
    if let Some(last) = event.claims.last() {
        let is_free = last.outcome.is_some() || last.until <= claim.at;
        return (event.is_accepted() || !is_free || last.reason != claim.reason).then_some(Broken::ClaimedTwice);
    }
    if claim.reason != Reason::Takeover && is_halted(before, event, claim) {
        return Some(Broken::ClaimedAgainstWish);
    }
    // The decision that is repeated was made without a quorum; the budget can only count it.
    if claim.reason != Reason::Takeover && exceeds_budget(before, event) {
        return Some(Broken::BudgetExceeded);
    }
    (!is_justified(before, event, claim)).then_some(Broken::ClaimedUnprepared)
}

/// The last hold that nobody released, or the last pause that nobody ended, is not over.
fn is_halted(before: &State, event: &Event, claim: &Claim) -> bool {
    let of_event = event.wishes.iter().rfind(|wish| matches!(wish.what, What::Hold { .. } | What::Release));
    let of_all = before.wishes.iter().rfind(|wish| matches!(wish.what, What::Pause { .. } | What::Resume));
    [of_event, of_all].into_iter().flatten().any(|wish| match wish.what {
        What::Hold { until } | What::Pause { until } => claim.at < until,
        What::Release | What::Approve { .. } | What::Resume | What::Other(_) => false,
    })
}

/// S4. What starts by itself, or names more VMs after its claim, exceeds a budget without anybody's decision: so it is
/// judged at the claim. An event that is too big by itself takes a group away alone.
fn exceeds_budget(before: &State, event: &Event) -> bool {
    // A voter that has yet to give its account may be approving any of them alone.
    let is_doubtful = before.suspicions.values().any(|suspicion| !suspicion.is_cleared);
    let is_claimed = |other: &&Event| {
        let may_be = is_doubtful && other.announcement.source == Source::User;
        may_be || other.entered.iter().any(|(stage, _)| *stage >= Stage::Claimed)
    };
    let others: Vec<&Event> = before
        .open_events()
        .filter(|other| other.drill.is_none())
        .filter(is_claimed)
        .filter(|other| other.announcement.id != event.announcement.id)
        .collect();
    let registered = || before.replicas.iter().flat_map(|(vm, replica)| effective(replica).map(move |w| (vm, w)));
    let own = registered().filter(|(vm, _)| event.announcement.resources.contains(vm));
    own.filter_map(|(_, workload)| workload.group.as_ref()).any(|group| {
        let of_group = || registered().filter(|(_, workload)| workload.group.as_ref() == Some(group));
        let is_for =
            |other: &Event, vm: &VmName| other.announcement.resources.contains(vm) && !other.departed.contains(vm);
        let is_taken = |vm: &VmName| others.iter().any(|other| is_for(other, vm));
        let taken = of_group().filter(|(vm, _)| is_taken(vm)).count();
        let together = of_group().filter(|(vm, _)| is_taken(vm) || event.announcement.resources.contains(vm)).count();
        let limits = before.replicas.values().flat_map(|replica| &replica.groups).filter(|known| known.name == *group);
        let limit = limits.map(|known| known.max_unavailable).min().unwrap_or(1).max(1);
        taken > 0 && u32::try_from(together).is_ok_and(|together| together > limit)
    })
}

fn is_justified(before: &State, event: &Event, claim: &Claim) -> bool {
    let is_open = |takeover: &Takeover| matches!(takeover.outcome, None | Some((PostOutcome::Unknown(_), _)));
    let Some(treatment) = &event.treatment else {
        // What was decided alone needs no policy to be repeated.
        return claim.reason == Reason::Takeover && event.takeovers.iter().any(is_open);
    };
    let mut needed = needed(before, event, treatment);
    let prepares = treatment.action == Action::Prepare;
    match claim.reason {
        Reason::Takeover => event.takeovers.iter().any(is_open),
        Reason::Policy => treatment.action == Action::Approve,
        Reason::Operator => {
            let decides = |wish: &&Wish| matches!(wish.what, What::Hold { .. } | What::Approve { .. });
            event.wishes.iter().rfind(decides).is_some_and(|wish| matches!(wish.what, What::Approve { .. }))
        }
        Reason::NothingToPrepare => prepares && needed.next().is_none(),
        Reason::BudgetSpent => {
            let is_spent = event.budget_ends().is_some_and(|ends| ends <= claim.at);
            prepares && is_spent && needed.all(|(member, id, hook)| !holds(event, &member, id, hook))
        }
        Reason::Prepared => prepares && needed.all(|(member, id, hook)| is_settled(event, &member, id, hook)),
    }
}

/// The configured workloads that nothing stands for, and those that dialled in.
pub(super) fn effective(replica: &Replica) -> impl Iterator<Item = &Workload> {
    let is_away = |dialled: &Workload| replica.conditions.get(&dialled.name).is_some_and(|known| !known.connected);
    let stands_back = move |dialled: &Workload| {
        let has_another = replica.workloads.iter().any(|configured| configured.name == dialled.name);
        dialled.on_absent == OnAbsent::Command && is_away(dialled) && has_another
    };
    let stands = move |name: &WorkloadName| replica.dialled.get(name).is_some_and(|each| !stands_back(each));
    let configured = replica.workloads.iter().filter(move |configured| !stands(&configured.name));
    configured.chain(replica.dialled.values().filter(move |dialled| !stands_back(dialled)))
}

/// Every hook that the event asks for.
fn needed<'a>(
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
            .filter(|(_, hook)| hook.kinds.is_empty() || hook.kinds.contains(&event.announcement.kind))
            .filter(|(_, hook)| event.announcement.kind != Kind::Freeze || is_worth_it(event, treatment, hook))
            .filter(|(id, hook)| has_time(event, treatment, hook) || event.attempts_of(&member, *id).count() > 0)
            .filter(|(id, _)| id.phase != Phase::Failover || is_primary(before, event, vm, workload))
            .map(|(id, hook)| (member.clone(), id, hook))
            .collect::<Vec<_>>()
    })
}

/// It dialled in, is away, and said that nothing is to be asked of it then.
fn is_passed_over(before: &State, vm: &VmName, workload: &Workload) -> bool {
    let is_away = before.replicas.get(vm).and_then(|replica| replica.conditions.get(&workload.name));
    workload.origin == Origin::Dialled
        && workload.on_absent == OnAbsent::Skip
        && is_away.is_some_and(|known| !known.connected)
}

fn has_time(event: &Event, treatment: &Treatment, hook: &Hook) -> bool {
    let notice = event.notice_ends().0.saturating_sub(event.preparation_starts().0);
    let needed = hook.worst.unwrap_or(hook.timeout) + treatment.margin;
    !hook.optional_if_short || i128::from(notice) >= i128::try_from(needed.as_millis()).unwrap_or(i128::MAX)
}

/// A replica is not, unless its failover was begun; one that nobody knows is, where no other affected one is known.
fn is_primary(before: &State, event: &Event, vm: &VmName, workload: &Workload) -> bool {
    let role = |vm: &VmName, name: &WorkloadName| {
        before.replicas.get(vm).and_then(|replica| replica.conditions.get(name)).map_or(Role::Unknown, |it| it.role)
    };
    let is_begun = event.attempts.iter().any(|attempt| {
        attempt.hook.phase == Phase::Failover && attempt.member.vm == *vm && attempt.member.workload == workload.name
    });
    let affected = before.replicas.iter().filter(|(vm, _)| event.announcement.resources.contains(vm));
    let mut others = affected.flat_map(|(vm, replica)| effective(replica).map(move |other| (vm, other)));
    let is_led = workload.group.is_some()
        && others.any(|(vm, other)| other.group == workload.group && role(vm, &other.name) == Role::Primary);
    match role(vm, &workload.name) {
        Role::Primary => true,
        Role::Unknown => !is_led || is_begun,
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

fn is_waived(event: &Event, member: &Member, id: HookId) -> bool {
    event.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == id)
}

fn is_settled(event: &Event, member: &Member, id: HookId, hook: &Hook) -> bool {
    let favourable = |outcome: &Outcome| match outcome {
        Outcome::Done | Outcome::NotApplicable => true,
        Outcome::NotDone | Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Cancelled | Outcome::Unknown(_) => {
            hook.on_failure == OnFailure::Continue
        }
        Outcome::Blocked(_) => false,
    };
    is_waived(event, member, id) || last_outcome(event, member, id).is_some_and(favourable)
}

/// It has failed as often as it may, and says that the event is not to be approved then.
fn holds(event: &Event, member: &Member, id: HookId, hook: &Hook) -> bool {
    let is_run = |attempt: &&Attempt| {
        attempt.intent == Intent::Run && !matches!(attempt.outcome, Some((Outcome::Blocked(_), _)))
    };
    let runs = event.attempts_of(member, id).filter(is_run).count();
    hook.on_failure == OnFailure::Hold
        && !is_waived(event, member, id)
        && u32::try_from(runs).is_ok_and(|runs| runs >= hook.attempts)
        && matches!(last_outcome(event, member, id), Some(Outcome::Failed(_)))
}
