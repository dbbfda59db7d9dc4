//! The reasons why an event has not started, for people (`SPEC.md` 12): from the event's clearance, and from facts
//! outside the log. Several reasons may hold at once, and an operator has to know each.

use crate::isolation::approval;
use crate::model::blocker::{Blocker, Clearance};
use crate::model::claim::{Claim, PostOutcome};
use crate::model::document::Status;
use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::isolation::ImdsHealth;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::{Timestamp, to_the_second};
use crate::model::treatment::Action;
use crate::model::workload::{Intent, Member, OnFailure};
use crate::plan::placement;
use crate::plan::registration::unregistered_blocker;
use crate::planning_input::PlanningInput;
use crate::schedule::clearance::{blocker_of_step, clearance, clearance_as_last_listed, clearance_of_preparation};
use crate::schedule::failure::{failure_before_return, holding_failure_among, hook_failed};
use crate::schedule::required;
use crate::schedule::slots;
use crate::schedule::step::Step;
use crate::schedule::step_state;
use crate::schedule::step_state::{StepState, is_satisfied};
use alloc::vec::Vec;

/// From this number on, failed posts are no accident.
const MANY_POSTS: usize = 3;

/// Why the event has not started, for people: each blocker, the one to act on first in front; empty without a reason to
/// wait.
pub fn explain(state: &State, event: &Event, input: &PlanningInput) -> Vec<Blocker> {
    let Some(found) = waits_for(state, event, input) else { return Vec::new() };
    let found = replica_away(state, event, input, &found).unwrap_or(found);
    let mut all = Vec::from([found]);
    if matches!(event.stage(), Stage::Announced | Stage::Preparing) {
        for other in further_blockers(state, event, input) {
            if !all.iter().any(|known| is_same(known, &other)) {
                all.push(other);
            }
        }
        all.sort_by_key(urgency);
    }
    all
}

/// Whether the event goes on only if a person acts.
pub fn needs_person(state: &State, event: &Event, blocker: &Blocker) -> bool {
    match blocker {
        // Azure starts the event before the hold ends, and until then no further hook begins.
        Blocker::Hold(hold) if hold.no_hooks && hold.until >= event.notice_ends() => {
            let is_left = |step: &Step<'_>| step.id.phase.is_disruptive() && !is_satisfied(event, step, state.now);
            required::required_steps(state, event).iter().any(is_left)
        }
        Blocker::NoQuorum { .. }
        | Blocker::HookFailed { .. }
        | Blocker::HookNotRun { .. }
        | Blocker::NoHealthyChannel => true,
        Blocker::Posting { .. } | Blocker::PostFailed { .. } => is_tried_in_vain(event),
        _ => false,
    }
}

/// The VM to name in an approval through Azure's control plane, if the event may be approved and lacks only an endpoint
/// that takes its approval. While no document counts, the event's last known status is taken, and a person has to look
/// first. `None` for an event without a VM of this cluster, and while an earlier approval may have arrived.
pub fn approvable_by_hand<'a>(state: &'a State, event: &Event, input: &PlanningInput) -> Option<&'a VmName> {
    let is_open = input.quorum && event.is_undecided() && !event.is_drill();
    let is_clear = || matches!(clearance_as_last_listed(state, event, input.now), Clearance::Clear(_));
    let lacks_endpoint = || input.approver_or_last_resort(state, event).is_none() || is_refused_again_and_again(event);
    let vm = state.replicas.keys().find(|vm| event.affects(vm));
    vm.filter(|_| is_open && is_clear() && lacks_endpoint())
}

fn is_refused_again_and_again(event: &Event) -> bool {
    let last = event.claims.last().and_then(|claim| claim.outcome.as_ref());
    is_tried_in_vain(event) && matches!(last, Some((PostOutcome::Refused(_) | PostOutcome::NotSent(_), _)))
}

fn is_tried_in_vain(event: &Event) -> bool {
    event.claims.iter().filter(|claim| claim.outcome.is_some()).count() >= MANY_POSTS
}

/// Whether the members of the event have returned, so that its hooks run again once no hold and no pause stops them, the
/// failed hooks too.
pub fn hooks_run_again(state: &State, event: &Event, now: Timestamp) -> bool {
    let has_returned = event.slots_since.is_none() && !event.gave_back.is_empty();
    let steps = required::required_steps(state, event);
    let is_let = has_returned && event.is_undecided() && !slots::waits_for_last_call(event);
    is_let && holding_failure_among(event, &steps, now).is_none()
}

/// The blockers that would remain if the first one were removed.
fn further_blockers(state: &State, event: &Event, input: &PlanningInput) -> Vec<Blocker> {
    let now = input.now;
    let mut all = Vec::new();
    let hooks = blocking_hooks(state, event, now);
    if event.is_drill() {
        return if input.quorum { hooks } else { all };
    }
    all.extend(event.hold(now).map(Blocker::Hold));
    let is_scheduled = state.observed_status(&event.announcement.id) == Some(&Status::Scheduled);
    let Some(treatment) = event.treatment.as_ref().filter(|_| is_scheduled) else { return all };
    let is_overruled = event.is_approved_by_operator();
    if treatment.action == Action::Observe && !is_overruled {
        all.push(Blocker::Observing);
        return all;
    }
    all.extend(state.pause(now).map(Blocker::Paused));
    let is_prepared = treatment.action == Action::Prepare && !is_overruled;
    if !input.quorum {
        // Reports of running hooks do not arrive here, so only a permanent failure is certain.
        all.extend(hooks.into_iter().filter(|hook| is_prepared && matches!(hook, Blocker::HookFailed { .. })));
        return all;
    }
    if is_prepared {
        // Beyond its budget, the event is approved in spite of its hooks.
        if let Clearance::Blocked(blocker) = clearance_of_preparation(state, event, now) {
            let blocker = replica_away(state, event, input, &blocker).unwrap_or(blocker);
            // A hook that only has to start is no further reason.
            all.extend(Some(blocker).filter(|it| !matches!(it, Blocker::HookWaiting { .. })));
            all.extend(hooks.into_iter().filter(|_| now >= event.preparation_starts()));
        }
    }
    // A replica whose report of the event is still under way has a healthy channel.
    if !input.members.iter().any(|name| has_channel(input, name)) {
        all.push(Blocker::NoHealthyChannel);
    }
    all
}

/// For each workload, the first hook that failed permanently and holds the event, was not run in time, is blocked, or
/// waits for a disconnected workload.
fn blocking_hooks(state: &State, event: &Event, now: Timestamp) -> Vec<Blocker> {
    let mut all: Vec<(Member, Blocker)> = Vec::new();
    for step in required::required_steps(state, event) {
        if all.iter().any(|(member, _)| *member == step.member) {
            continue;
        }
        if let Some(blocker) = blocking_hook(state, event, &step, now) {
            all.push((step.member, blocker));
        }
    }
    all.into_iter().map(|(_, blocker)| blocker).collect()
}

fn blocking_hook(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> Option<Blocker> {
    match step_state::state_without_undo(event, step, now) {
        StepState::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => failure_before_return(event, core::slice::from_ref(step), now).or_else(|| {
            blocker_of_step(state, event, step, now).filter(|it| {
                matches!(it, Blocker::HookNotRun { .. } | Blocker::HookBlocked { .. } | Blocker::WorkloadAway { .. })
            })
        }),
    }
}

/// Whether both are the same reason; their times and texts may differ.
fn is_same(one: &Blocker, other: &Blocker) -> bool {
    one.code() == other.code() && one.of_hook() == other.of_hook()
}

/// The lower, the sooner somebody has to act. Without a quorum nothing is decided; a failed hook does not mend itself; a
/// hold or a pause is known to whoever asked for it; the rest goes on by itself.
fn urgency(blocker: &Blocker) -> u8 {
    match blocker {
        Blocker::NoQuorum { .. } => 0,
        Blocker::HookFailed { .. } | Blocker::HookNotRun { .. } => 1,
        Blocker::NoHealthyChannel => 2,
        Blocker::HookBlocked { .. } | Blocker::WorkloadAway { .. } | Blocker::ReplicaAway { .. } => 3,
        Blocker::Hold(_) => 4,
        Blocker::Paused(_) => 5,
        Blocker::Budget { .. } => 6,
        _ => 7,
    }
}

fn waits_for(state: &State, event: &Event, input: &PlanningInput) -> Option<Blocker> {
    if event.stage() == Stage::Approved
        && let Some(since) = event.approved_since()
    {
        return Some(Blocker::WaitingForPlatform { since });
    }
    if event.stage() >= Stage::Started {
        return None;
    }
    if !input.quorum {
        let takeover = if event.is_drill() { None } else { approval::forecast(state, input, &event.announcement.id) };
        return Some(Blocker::NoQuorum { forecast: takeover });
    }
    if event.is_drill() {
        let prepared = event.treatment.as_ref().map(|_| clearance_of_preparation(state, event, input.now));
        return Some(match prepared {
            Some(Clearance::Blocked(blocker)) => blocker,
            Some(Clearance::Clear(_) | Clearance::NothingToApprove) | None => Blocker::Deciding,
        });
    }
    if let Some(claim) = event.open_claim() {
        return Some(Blocker::Posting { approver: claim.approver.clone(), since: claim.at, until: claim.until });
    }
    match clearance(state, event, input.now) {
        Clearance::NothingToApprove if state.is_listed(&event.announcement.id) => Some(Blocker::Observing),
        // No document counts, so the status of the event is unknown.
        Clearance::NothingToApprove => Some(without_document(event, input)),
        Clearance::Blocked(blocker) => Some(blocker),
        Clearance::Clear(_) if input.approver_or_last_resort(state, event).is_none() => {
            Some(without_document(event, input))
        }
        Clearance::Clear(reason) => {
            let failed = || event.claims.last().and_then(|last| post_failed(event, last));
            unregistered_blocker(state, event, reason, input).or_else(failed).or(Some(Blocker::Deciding))
        }
    }
}

/// A replica that listed the event, and has a healthy channel, does not list the event as Scheduled now: the event is
/// about to end, or its report is under way. Otherwise an endpoint has to be repaired.
fn without_document(event: &Event, input: &PlanningInput) -> Blocker {
    let mut seers = input.members.iter().filter(|name| event.seen_by.contains(*name));
    if seers.any(|name| has_channel(input, name)) { Blocker::NotListed } else { Blocker::NoHealthyChannel }
}

fn has_channel(input: &PlanningInput, name: &VmName) -> bool {
    input.peers.get(name).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy)
}

fn post_failed(event: &Event, last: &Claim) -> Option<Blocker> {
    let (outcome, at) = last.outcome.clone()?;
    let again_at = event.next_claim_from()?;
    Some(Blocker::PostFailed { approver: last.approver.clone(), outcome, at, again_at })
}

/// Reachability is not in the log.
fn replica_away(state: &State, event: &Event, input: &PlanningInput, found: &Blocker) -> Option<Blocker> {
    let (member, hook) = match found {
        Blocker::HookWaiting { member, hook, .. } | Blocker::HookBlocked { member, hook, .. } => (member, hook),
        // A user's event does not wait for the hook's deadline.
        Blocker::HookRunning { member, hook, on, .. } if event.is_user_initiated() && !input.reaches(on) => {
            (member, hook)
        }
        _ => return None,
    };
    if slots::waits_for_last_call(event) {
        return None;
    }
    let steps = required::required_steps(state, event);
    let step = steps.iter().find(|step| step.member == *member && step.id == *hook)?;
    if placement::replica_for_step(state, event, step, Intent::Run, input).is_some() {
        return None;
    }
    let silent = input.peers.get(&member.vm).filter(|contact| !contact.reachable);
    let since = silent.map(|contact| to_the_second(contact.since));
    let passed_over_at =
        placement::unreachable_replica_given_up_at(&member.vm, input).filter(|_| event.is_user_initiated());
    let passed_over_at = passed_over_at.map(to_the_second);
    Some(Blocker::ReplicaAway { member: member.clone(), hook: *hook, since, passed_over_at })
}
