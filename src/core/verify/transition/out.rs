//! Members out of service at one time (S4, S11, S12 and S14), from the raw facts: checked whenever an event takes a
//! slot, begins a disruptive hook, or is claimed.

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::Began;
use super::claimed::{effective, is_waived, may_be_told, needed};
use crate::model::attempt::{Attempt, Outcome};
use crate::model::claim::Reason;
use crate::model::document::{EventType, Source, Status};
use crate::model::drill::Mode;
use crate::model::event::Event;
use crate::model::id::GroupName;
use crate::model::lifecycle::Stage;
use crate::model::operator::OperatorAction;
use crate::model::slot::{Slot, SlotState};
use crate::model::state::{Replica, State};
use crate::model::time::Timestamp;
use crate::model::workload::{Hook, Intent, Member, Origin, Phase, Readiness, Role, Workload};
use crate::verify::invariants::Violation;

pub(super) fn violated(
    before: &State,
    after: &State,
    event: &Event,
    later: &Event,
    Began { begun, claimed }: &Began<'_>,
) -> Option<Violation> {
    let is_dry = event.drill.as_ref().is_some_and(|drill| drill.mode == Mode::DryRun);
    let disrupts = |attempt: &&&Attempt| {
        let takes = matches!(attempt.hook.phase, Phase::Failover | Phase::Drain | Phase::Shutdown);
        takes && attempt.intent == Intent::Run && !is_dry
    };
    let is_going =
        later.entered.last().is_some_and(|(stage, _)| *stage >= Stage::Claimed) || !later.isolated_approvals.is_empty();
    if event.last_call_since.is_none() && later.last_call_since.is_some_and(|at| is_early(later, at)) {
        return Some(Violation::BudgetExceeded);
    }
    let has_taken = !is_going && !is_dry && later.slots_since.is_some() && event.slots_since.is_none();
    if has_taken && exceeds(before, after, later) {
        return Some(Violation::BudgetExceeded);
    }
    for attempt in begun.iter().filter(disrupts) {
        let slot = before.slots.get(&attempt.member);
        if slot.is_none_or(|slot| slot.stint != attempt.stint || !slot.events.contains(&event.announcement.id)) {
            return Some(Violation::BudgetExceeded);
        }
        // The event may be over.
        if before.observed_status(&event.announcement.id) == Some(&Status::Missing) {
            return Some(Violation::BudgetExceeded);
        }
        // If the event was first seen as started, service moves away regardless of other members out of service.
        if !is_going && !completes(event, attempt) && exceeds(before, before, event) {
            return Some(Violation::BudgetExceeded);
        }
        if is_out_of_turn(before, event, attempt) {
            return Some(Violation::FailoverOutOfTurn);
        }
    }
    let claim = claimed.iter().find(|claim| claim.reason != Reason::IsolatedApproval)?;
    let current = members(before, event).into_iter().map(|(member, _)| member);
    let stint = |member: &Member| before.slots.get(member).filter(|slot| slot.events.contains(&event.announcement.id));
    if current.into_iter().any(|member| {
        let named = claim.stints.iter().find(|(of, _)| *of == member).map(|(_, stint)| *stint);
        named.is_none() || stint(&member).map(|slot| slot.stint) != named
    }) {
        return Some(Violation::StintMixed);
    }
    let repeats = event
        .claims
        .iter()
        .any(|earlier| may_be_told(earlier) && earlier.decided_at_revision == claim.decided_at_revision);
    (!repeats && exceeds(before, before, event)).then_some(Violation::BudgetExceeded)
}

/// A failover that began, and was neither done nor undone since, is run again: the group may have no primary until then.
fn completes(event: &Event, attempt: &Attempt) -> bool {
    let is_of_hook = |earlier: &&Attempt| {
        (&earlier.member, earlier.hook, earlier.stint) == (&attempt.member, attempt.hook, attempt.stint)
    };
    let is_end = |it: &&Attempt| matches!(it.outcome, Some((Outcome::Done | Outcome::NotApplicable, _)));
    let ended = event.attempts.iter().filter(is_of_hook).rfind(is_end).map(|end| end.id);
    let has_begun = |earlier: &Attempt| {
        let is_same = is_of_hook(&earlier) && Some(earlier.id) > ended;
        let is_idle =
            matches!(earlier.outcome, None | Some((Outcome::Done | Outcome::NotApplicable | Outcome::Blocked(_), _)));
        is_same && earlier.intent == Intent::Run && !is_idle
    };
    attempt.hook.phase == Phase::Failover && event.attempts.iter().any(has_begun)
}

/// A last call is too early while more time is left than policy's last call, or a quarter of the notice, before the end
/// of the hooks.
fn is_early(event: &Event, at: Timestamp) -> bool {
    let whole = event.notice_ends().since(event.first_seen());
    let least = whole.as_millis() / 4;
    let left = event.notice_ends().minus(event.margin()).since(at).as_millis();
    let most = event.treatment.as_ref().map_or(0, |treatment| treatment.last_call.as_millis());
    whole.as_millis() >= most && left > least.min(most)
}

/// The registered workloads on the VMs that an event affects, with their groups.
fn members(state: &State, event: &Event) -> BTreeSet<(Member, Option<GroupName>)> {
    let named = state
        .replicas
        .iter()
        .filter(|(vm, _)| event.announcement.resources.contains(vm) && !event.departed.contains(vm));
    let workloads = named.flat_map(|(vm, replica)| effective(replica).map(move |workload| (vm, workload)));
    let matters = workloads.filter(|(_, workload)| workload.group.is_some() || !workload.hooks.is_empty());
    matters
        .map(|(vm, workload)| (Member { vm: vm.clone(), workload: workload.name.clone() }, workload.group.clone()))
        .collect()
}

/// The workload's `ready` hook reports not ready, or its session, with such a hook or a role, is disconnected.
fn is_unready(replica: &Replica, workload: &Workload) -> bool {
    let Some(condition) = replica.conditions.get(&workload.name) else { return false };
    let has_hook = workload.hooks.iter().any(|hook| hook.phase == Phase::Ready);
    match workload.origin {
        Origin::Configured => has_hook && condition.readiness == Readiness::NotReady,
        Origin::Session { .. } => !condition.connected && (has_hook || condition.role != Role::Unknown),
    }
}

/// S4. Sickness of the event's members is judged in `was`, and slots are counted in `now`.
fn exceeds(was: &State, now: &State, event: &Event) -> bool {
    let own = members(now, event);
    let is_sick = |member: &Member| {
        let replica = was.replicas.get(&member.vm);
        let is_silent = replica.is_some_and(|replica| replica.unreachable.is_some());
        let own = replica.and_then(|replica| effective(replica).find(|workload| workload.name == member.workload));
        let is_unready = replica.zip(own).is_some_and(|(replica, workload)| is_unready(replica, workload));
        let slot = was.slots.get(member);
        let has_failed = slot.is_some_and(|slot| slot.restore_failed || has_failed(was, member, slot));
        is_silent || has_failed || is_unready
    };
    let is_repair = event.announcement.source == Source::User && own.iter().all(|(member, _)| is_sick(member));
    let is_brief = event.announcement.kind == EventType::Freeze
        && event.announcement.duration.is_some_and(|duration| duration.as_secs() < 10)
        && !event.attempts.iter().any(|attempt| attempt.hook.phase.is_disruptive());
    let decisions = event
        .operator_records
        .iter()
        .filter(|wish| matches!(wish.what, OperatorAction::Hold { .. } | OperatorAction::Approve { .. }));
    let is_overruled = decisions
        .max_by_key(|wish| wish.number)
        .is_some_and(|wish| matches!(wish.what, OperatorAction::Approve { over_budget: true, .. }));
    if is_repair || is_brief || is_overruled || event.last_call_since.is_some() {
        return false;
    }
    let groups: BTreeSet<&GroupName> = own.iter().filter_map(|(_, group)| group.as_ref()).collect();
    groups.into_iter().any(|group| {
        let registered = now.replicas.iter().flat_map(|(vm, replica)| {
            effective(replica).filter(|workload| workload.group.as_ref() == Some(group)).map(move |workload| {
                let is_sick = replica.unreachable.is_some() || is_unready(replica, workload);
                (Member { vm: vm.clone(), workload: workload.name.clone() }, is_sick)
            })
        });
        let mut out: BTreeSet<Member> = registered
            .filter(|(member, is_sick)| *is_sick || now.slots.contains_key(member))
            .map(|(member, _)| member)
            .collect();
        out.extend(now.slots.iter().filter(|(_, slot)| slot.group.as_ref() == Some(group)).map(|(it, _)| it.clone()));
        let mine: BTreeSet<Member> =
            own.iter().filter(|(_, of)| of.as_ref() == Some(group)).map(|(member, _)| member.clone()).collect();
        let others = out.difference(&mine).count();
        let limits = now.replicas.values().flat_map(|replica| &replica.groups).filter(|known| known.name == *group);
        let limit = limits.map(|known| known.max_unavailable).min().unwrap_or(1).max(1);
        // An event larger than the limit stops its members all at once, and alone.
        others > 0 && u32::try_from(others + mine.len()).is_ok_and(|together| together > limit)
    })
}

fn has_failed(state: &State, member: &Member, slot: &Slot) -> bool {
    let restores = state.open_events().flat_map(|event| &event.attempts).filter(|attempt| {
        attempt.member == *member && attempt.stint == slot.stint && attempt.hook.phase >= Phase::Restore
    });
    let last = restores.filter(|attempt| attempt.outcome.is_some()).max_by_key(|attempt| attempt.id);
    let outcome = last.and_then(|attempt| attempt.outcome.as_ref());
    slot.state == SlotState::Returning && outcome.is_some_and(|(outcome, _)| !outcome.is_favourable())
}

/// S11: a failover of a group beside another failover, or a primary's disruptive hook before its failover.
fn is_out_of_turn(before: &State, event: &Event, begun: &Attempt) -> bool {
    let group_of = |member: &Member| {
        let mut workloads = before.replicas.get(&member.vm).into_iter().flat_map(|replica| effective(replica));
        workloads.find(|workload| workload.name == member.workload)?.group.clone()
    };
    if begun.hook.phase == Phase::Failover {
        let group = group_of(&begun.member);
        let mut open = before.open_events().flat_map(|event| &event.attempts);
        return group.is_some()
            && open.any(|other| {
                let runs = other.outcome.is_none() && other.hook.phase == Phase::Failover;
                runs && group_of(&other.member) == group
            });
    }
    let condition = before.replicas.get(&begun.member.vm).and_then(|it| it.conditions.get(&begun.member.workload));
    if condition.is_none_or(|condition| condition.role != Role::Primary) {
        return false;
    }
    let Some(treatment) = &event.treatment else { return false };
    let mut failovers = needed(before, event, treatment)
        .filter(|(member, id, _)| *member == begun.member && id.phase == Phase::Failover);
    failovers.any(|(member, id, _)| {
        let all = before.open_events().flat_map(|event| &event.attempts);
        let mut done = all.filter(|attempt| {
            let same = attempt.stint == begun.stint && attempt.hook == id && attempt.member == member;
            same && matches!(attempt.outcome, Some((Outcome::Done | Outcome::NotApplicable, _)))
        });
        !is_waived(event, &member, id) && done.next().is_none()
    })
}

/// S12: a member is back in service without a restore.
pub(super) fn not_restored(before: &State, after: &State) -> Option<Violation> {
    let is_declared = |member: &Member| {
        after
            .operator_records
            .iter()
            .any(|wish| wish.number > before.operator_seq && wish.what == OperatorAction::Restored(member.clone()))
    };
    let is_owed = |(member, slot): &(&Member, &Slot)| {
        let is_back = after.slots.get(*member).is_none_or(|now| !now.needs_restore);
        let replica = after.replicas.get(&member.vm);
        let Some(replica) = replica.filter(|_| slot.needs_restore && slot.state != SlotState::Gone && is_back) else {
            return false;
        };
        let restores_of = |it: &'_ Workload| it.name == member.workload && it.hooks_of(Phase::Restore).next().is_some();
        // The present registration, or else the registration from when the member left.
        let known = effective(replica).find(|it| restores_of(it));
        let was =
            before.replicas.get(&member.vm).into_iter().flat_map(|it| effective(it).chain(it.owed_workloads.values()));
        let was = was.filter(|it| it.origin == Origin::Configured).find(|it| restores_of(it));
        let mut restores = known.or(was).into_iter().flat_map(|it| it.hooks_of(Phase::Restore));
        let took_away = |event: &Event| {
            let mut disruptive = event.attempts.iter().filter(|it| it.hook.phase.is_disruptive());
            disruptive.any(|it| it.stint == slot.stint && it.member == **member && it.intent == Intent::Run)
        };
        let kinds: Vec<&EventType> =
            before.events().filter(|event| took_away(event)).map(|event| &event.announcement.kind).collect();
        let is_due = |hook: &Hook| hook.event_types.is_empty() || kinds.iter().any(|it| hook.event_types.contains(it));
        let mut restores = restores.by_ref().filter(|(_, hook)| is_due(hook));
        !is_declared(member)
            && restores.any(|(id, _)| {
                let all = after.events().flat_map(|event| &event.attempts);
                let of_hook = all.filter(|it| {
                    // A restore from before the member left once more is of no use.
                    let is_of_now = it.stint == slot.stint && it.begun_at >= slot.since;
                    is_of_now && it.hook == id && it.member == **member
                });
                let last = of_hook.max_by_key(|attempt| attempt.id).and_then(|attempt| attempt.outcome.as_ref());
                !last.is_some_and(|(outcome, _)| matches!(outcome, Outcome::Done | Outcome::NotApplicable))
            })
    };
    before.slots.iter().any(|slot| is_owed(&slot)).then_some(Violation::NotRestored)
}
