//! What must hold between a state and the one that an entry makes of it (`behaviour.md` 13), written from the raw
//! facts as `invariants` is. Whether a claim was justified can only be said at the moment it is made: later entries
//! may carry the same time and change everything it rested on.

use alloc::vec::Vec;

use super::attempt::{Attempt, Outcome};
use super::claim::{Claim, PostOutcome, Reason};
use super::document::{Kind, Source, Status};
use super::event::Event;
use super::id::{VmName, WorkloadName};
use super::invariants::Broken;
use super::lifecycle::Stage;
use super::operator::{What, Wish};
use super::policy::{Action, Treatment};
use super::state::{Replica, State};
use super::takeover::Takeover;
use super::workload::{Hook, HookId, Intent, Member, OnAbsent, OnFailure, Origin, Phase, Role, Workload};

/// The first property that the step from one state to the next breaks.
pub fn violated(before: &State, after: &State) -> Option<Broken> {
    if before.replicas.keys().any(|name| !after.replicas.contains_key(name) && !is_deleted(before, name)) {
        return Some(Broken::Forgotten);
    }
    before.open.values().find_map(|event| {
        let Some(later) = successor(event, after) else {
            return Some(Broken::Rewritten);
        };
        let begun = later.attempts.get(event.attempts.len()..).unwrap_or_default();
        let claimed = later.claims.get(event.claims.len()..).unwrap_or_default();
        if begun.iter().any(|attempt| is_restored_wrongly(before, event, attempt)) {
            Some(Broken::RestoredWrongly)
        } else if begun.iter().any(|attempt| is_undone_wrongly(before, event, attempt)) {
            Some(Broken::UndoneWrongly)
        } else if begun.iter().any(|attempt| is_beside_another(before, event, attempt)) {
            Some(Broken::RunBeside)
        } else if begun.iter().any(|attempt| is_asked_wrongly(before, event, attempt)) {
            Some(Broken::AskedWrongly)
        } else if is_taken_over_wrongly(event, later) {
            Some(Broken::TakenOverWrongly)
        } else if is_approved_unseen(before, event, later) {
            Some(Broken::ApprovedUnseen)
        } else {
            claimed.iter().find_map(|claim| violated_by_claim(before, event, claim))
        }
    })
}

/// A deletion that names it has started, or was approved and is over, and the replica was not heard since.
fn is_deleted(before: &State, name: &VmName) -> bool {
    let is_silent = before.replicas.get(name).is_some_and(|replica| replica.discounted.is_some());
    before.open.values().chain(&before.history).any(|event| {
        let is_over = event.is_accepted() && event.over_at().is_some();
        let has_begun = event.entered_at(Stage::Started).is_some() || (is_over && is_silent);
        event.announcement.kind == Kind::Terminate && event.announcement.resources.contains(name) && has_begun
    })
}

/// The same event afterwards, as it was kept; an event that closes may be listed again under its id in the same step,
/// and even at the same moment.
fn successor<'a>(event: &Event, after: &'a State) -> Option<&'a Event> {
    let id = &event.announcement.id;
    let closed = after.history.iter().rev().filter(|later| later.announcement.id == *id);
    after
        .open
        .get(id)
        .into_iter()
        .chain(closed)
        .find(|later| later.entered.starts_with(&event.entered) && is_kept(event, later))
}

/// Nothing that was recorded is taken back; an ending may turn out to be a cancellation.
fn is_kept(event: &Event, later: &Event) -> bool {
    event.attempts.len() <= later.attempts.len()
        && event.attempts.iter().zip(&later.attempts).all(|(was, is)| {
            let same = was.id == is.id && was.on == is.on && was.deadline <= is.deadline && was.begun_at == is.begun_at;
            same && (was.outcome.is_none() || was.outcome == is.outcome)
        })
        && event.claims.len() <= later.claims.len()
        && event.claims.iter().zip(&later.claims).all(|(was, is)| {
            let same = was.attempt == is.attempt && was.approver == is.approver && was.until == is.until;
            same && (was.outcome.is_none() || was.outcome == is.outcome)
        })
        && event.takeovers.len() <= later.takeovers.len()
        && event.revision <= later.revision
        && event.drill == later.drill
        && event.impacts.iter().all(|(vm, lasted)| later.impacts.get(vm) == Some(lasted))
        && later.impacts.keys().all(|vm| event.announcement.resources.contains(vm))
        && (event.treatment.is_none() || event.treatment == later.treatment)
}

/// Another event has something running for the same workload; or both are exclusive, of the same phase and of workloads of the same name, and neither only asks.
fn is_beside_another(before: &State, event: &Event, begun: &Attempt) -> bool {
    let others = before.open.values().filter(|other| other.announcement.id != event.announcement.id);
    let mut elsewhere = others.flat_map(|other| &other.attempts);
    if elsewhere.any(|other| other.member == begun.member && other.outcome.is_none()) {
        return true;
    }
    let is_exclusive = |attempt: &Attempt| declared(before, attempt).is_some_and(|hook| hook.exclusive);
    let is_same = |other: &&Attempt| {
        other.member.workload == begun.member.workload && other.hook.phase == begun.hook.phase && is_exclusive(other)
    };
    let mut open = before.open.values().flat_map(|event| &event.attempts).filter(|other| other.outcome.is_none());
    begun.intent == Intent::Run && is_exclusive(begun) && open.any(|other| is_same(&other))
}

/// The hook as it is registered.
fn declared<'a>(before: &'a State, attempt: &Attempt) -> Option<&'a Hook> {
    let mut workloads = before.replicas.get(&attempt.member.vm).into_iter().flat_map(effective);
    workloads.find(|workload| workload.name == attempt.member.workload)?.hook(attempt.hook)
}

/// L2: asked about is what is in doubt, or done for too long to be relied on. What was stopped at its deadline, and does
/// not answer when it is asked about, is not asked about again.
fn is_asked_wrongly(before: &State, event: &Event, asked: &Attempt) -> bool {
    let mut earlier =
        event.attempts_of(&asked.member, asked.hook).rev().filter(|attempt| attempt.intent != Intent::Undo).peekable();
    let Some(last) = earlier.peek().copied().filter(|_| asked.intent == Intent::Confirm) else {
        return asked.intent == Intent::Confirm;
    };
    let run = earlier.find(|attempt| attempt.intent == Intent::Run);
    let has_timed_out = run.is_some_and(|run| matches!(run.outcome, Some((Outcome::TimedOut(_), _))));
    match (last.intent, last.outcome.as_ref().map(|(outcome, _)| outcome)) {
        (_, Some(Outcome::Unknown(_)))
        | (Intent::Confirm, Some(Outcome::Blocked(_)))
        | (Intent::Run, Some(Outcome::TimedOut(_))) => false,
        (_, Some(Outcome::Done)) => declared(before, asked).is_some_and(|hook| hook.fresh_for.is_none()),
        (Intent::Confirm, Some(Outcome::TimedOut(_) | Outcome::Failed(_) | Outcome::Cancelled)) => has_timed_out,
        _ => true,
    }
}

/// S5: without a quorum only what a user asked for is approved, and never while a hook that the log knows may run.
fn is_taken_over_wrongly(event: &Event, later: &Event) -> bool {
    let taken_over = later.takeovers.get(event.takeovers.len()..).unwrap_or_default();
    taken_over.iter().any(|takeover| {
        let may_run = |attempt: &Attempt| {
            let ended = attempt.outcome.as_ref().is_some_and(|(_, at)| *at <= takeover.at);
            attempt.begun_at < takeover.alone_since && !ended && takeover.at < attempt.deadline
        };
        event.announcement.source != Source::User || event.attempts.iter().any(may_run)
    })
}

/// S8: only on its own VM, and never while the event is still listed.
fn is_restored_wrongly(before: &State, event: &Event, attempt: &Attempt) -> bool {
    attempt.hook.phase >= Phase::Restore
        && (attempt.on != attempt.member.vm || before.is_listed(&event.announcement.id))
}

/// S8: only what was run and is not done is taken back, when the event is over, or a failover before it is claimed.
fn is_undone_wrongly(before: &State, event: &Event, attempt: &Attempt) -> bool {
    let (member, id) = (&attempt.member, attempt.hook);
    let has_run = event.attempts_of(member, id).any(|earlier| earlier.intent == Intent::Run);
    let is_done = matches!(last_outcome(event, member, id), None | Some(Outcome::Done | Outcome::NotApplicable));
    let is_over = event.over_at().is_some() && !before.is_listed(&event.announcement.id);
    let is_awaited = id.phase == Phase::Failover && event.entered.iter().all(|(stage, _)| *stage < Stage::Claimed);
    attempt.intent == Intent::Undo && (!has_run || is_done || !(is_over || is_awaited))
}

/// S1, S2 and S4.
fn violated_by_claim(before: &State, event: &Event, claim: &Claim) -> Option<Broken> {
    let lists = |replica: &super::state::Replica| replica.lists(&event.announcement.id) == Some(&Status::Scheduled);
    if !before.replicas.get(&claim.approver).is_some_and(lists) || event.over_at().is_some() {
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

fn is_approved_unseen(before: &State, event: &Event, later: &Event) -> bool {
    let is_new = |wish: &&Wish| wish.number > before.wished;
    let mut added = later.wishes.iter().filter(is_new);
    added.any(|wish| matches!(wish.what, What::Approve { revision } if revision != event.revision))
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
        .open
        .values()
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
fn effective(replica: &Replica) -> impl Iterator<Item = &Workload> {
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

fn last_outcome<'a>(event: &'a Event, member: &Member, id: HookId) -> Option<&'a Outcome> {
    let last = event.attempts_of(member, id).rfind(|attempt| attempt.intent != Intent::Undo)?;
    last.outcome.as_ref().map(|(outcome, _)| outcome)
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
