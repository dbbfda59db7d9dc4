//! The fold: `apply` runs on every replica for every entry of the log, and again after a restart.
//!
//! It is total and has no clock. Every guard stands here: what a planner or an executor checked before is only a
//! hint, and an illegal, repeated or late command is ignored with its reason.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::attempt::{Attempt, Waiver, WaiverReason};
use super::blocker::{Clearance, clearance};
use super::claim::{Claim, PostOutcome, Reason};
use super::command::{Command, Entry, Ignored, Verdict};
use super::departure;
use super::document::Status;
use super::drill;
use super::event::{Ending, Event};
use super::exclusion;
use super::id::{AttemptId, EventId, VmName};
use super::impact;
use super::lifecycle::Stage;
use super::notice;
use super::operator::{self, Asker};
use super::peers::may_run_on;
use super::policy::{Action, Treatment};
use super::roster;
use super::running;
use super::sight;
use super::slot::needed;
use super::slot_changes;
use super::state::{Replica, State};
use super::steps;
use super::suspicion;
use super::time::Timestamp;
use super::version;
use super::workload::{HookId, Intent, Member, Phase};

pub(super) type Applied = Result<(), Ignored>;

/// Folds one entry into the state.
pub fn apply(state: &mut State, entry: &Entry) -> Verdict {
    state.now = state.now.max(entry.at);
    match dispatch(state, &entry.by, &entry.command) {
        Ok(()) => {
            drill::give_way(state);
            sight::reconsider(state);
            slot_changes::settle(state);
            debug_assert_eq!(super::invariants::violated(state), None, "after {entry:?}");
            Verdict::Applied
        }
        Err(ignored) => Verdict::Ignored(ignored),
    }
}

fn dispatch(state: &mut State, by: &VmName, command: &Command) -> Applied {
    match command {
        Command::Register { workloads, groups } => roster::register(state, by, workloads, groups),
        Command::Report { after, document } => sight::report(state, by, *after, document),
        Command::Discount { replica } => sight::discount(state, replica),
        Command::Treat { event, treatment } => treat(state, event, treatment),
        Command::Begin { event, member, hook, intent, on, deadline } => {
            begin(state, event, member, *hook, *intent, on, *deadline)
        }
        Command::Advance { event, attempt, progress } => running::advance(state, by, event, *attempt, progress),
        Command::Settle { event, attempt, outcome } => running::settle(state, by, event, *attempt, outcome),
        Command::Expire { event, attempt } => running::expire(state, event, *attempt),
        Command::Waive { event, member, hook, why } => waive(state, event, member, *hook, why),
        Command::Claim { event, approver, reason, decision, stints, until } => {
            let made = Decided { reason: *reason, decision: *decision, stints };
            claim(state, by, event, approver, made, *until)
        }
        Command::Posted { event, attempt, outcome } => posted(state, by, event, *attempt, outcome),
        Command::Take { event } => slot_changes::take(state, event),
        Command::GiveBack { event } => slot_changes::give_back(state, event),
        Command::LastCall { event } => slot_changes::last_call(state, event),
        Command::Removed { replica } => slot_changes::removed(state, replica),
        Command::Contact { replica, reachable } => slot_changes::contact(state, replica, *reachable),
        Command::Forget { event } => sight::forget(state, event),
        Command::Lead { term, turn, voters } => suspicion::lead(state, by, *term, *turn, voters),
        Command::Suspect { replica, number } => suspicion::suspect(state, replica, *number),
        Command::Absolve { replica } => suspicion::absolve(state, replica),
        Command::Exclude { replica } => exclusion::exclude(state, replica),
        Command::Readmit { replica } => exclusion::readmit(state, replica),
        Command::Account { number, journal } => suspicion::account(state, by, *number, journal),
        Command::Dismiss { replica } => departure::dismiss(state, replica),
        Command::Drill { announcement, mode, who } => drill::begin(state, by, announcement, *mode, who),
        Command::EndDrill { event } => drill::end(state, event),
        Command::Ask { what, who, reason } => operator::ask(state, what, Asker { who, reason }),
        Command::Enlist { workload } => roster::enlist(state, by, workload),
        Command::Delist { workload } => roster::delist(state, by, workload),
        Command::Note { conditions } => roster::note(state, by, conditions),
        Command::Extend { event, attempt, deadline } => running::extend(state, by, event, *attempt, *deadline),
        Command::Observed { event, lasted } => impact::observed(state, by, event, *lasted),
        Command::Notified { told } => notice::notified(state, told),
        Command::Raise { version } => version::raise(state, by, *version),
    }
}

/// The replica, to be changed.
pub(super) fn registered<'a>(state: &'a mut State, name: &VmName) -> Result<&'a mut Replica, Ignored> {
    state.replicas.get_mut(name).map(Arc::make_mut).ok_or(Ignored::UnknownReplica)
}

/// The open event, to be changed.
pub(super) fn open<'a>(state: &'a mut State, id: &EventId) -> Result<&'a mut Event, Ignored> {
    state.open.get_mut(id).map(Arc::make_mut).ok_or(Ignored::UnknownEvent)
}

/// Open, or else the last one of this id that was closed.
pub(super) fn known<'a>(state: &'a mut State, id: &EventId) -> Result<&'a mut Event, Ignored> {
    let known = match state.open.get_mut(id) {
        Some(event) => Some(event),
        None => state.history.iter_mut().rev().find(|event| event.announcement.id == *id),
    };
    known.map(Arc::make_mut).ok_or(Ignored::UnknownEvent)
}

fn treat(state: &mut State, id: &EventId, treatment: &Treatment) -> Applied {
    let now = state.now;
    let event = open(state, id)?;
    if event.treatment.is_some() {
        return Err(Ignored::Repeated);
    }
    if event.stage().is_over() {
        return Err(Ignored::NotNow);
    }
    event.treatment = Some(treatment.clone());
    event.treated = Some(now);
    event.revision += 1;
    let prepares = treatment.action == Action::Prepare && !steps::preparing(state, &state.open[id]).is_empty();
    if prepares {
        sight::enter(open(state, id)?, Stage::Preparing, now);
    }
    // Where there is room it need not be asked for: one entry less before the first hook.
    let _ = slot_changes::take(state, id);
    Ok(())
}

fn begin(
    state: &mut State,
    id: &EventId,
    member: &Member,
    hook: HookId,
    intent: Intent,
    on: &VmName,
    deadline: Timestamp,
) -> Applied {
    let now = state.now;
    if !state.replicas.contains_key(on) {
        return Err(Ignored::UnknownReplica);
    }
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    let is_it = |next: &steps::Next<'_>| next.step.member == *member && next.step.id == hook && next.intent == intent;
    let due = steps::next(state, event, now);
    let step = &due.iter().find(|next| is_it(next)).ok_or(Ignored::NotDue)?.step;
    let stint = step.stint;
    let there = Member { vm: on.clone(), workload: member.workload.clone() };
    // What it was when it was taken away is run by its replica, whoever dials in now.
    let is_former = state.workload(member).is_none_or(|workload| workload.hook(hook).is_none());
    if !may_run_on(state, event, step, intent, on) || (state.is_absent(&there) && !is_former) {
        return Err(Ignored::NotDue);
    }
    // The planner may not have known yet that less time is left.
    let ends = if intent == Intent::Undo { None } else { event.time_ends(hook.phase) };
    let deadline = ends.map_or(deadline, |ends| ends.min(deadline));
    let takes_away = hook.phase.is_disruptive() && intent == Intent::Run && !event.is_dry_run();
    let attempt = state.next_attempt();
    let event = open(state, id)?;
    // A workload may have registered after the treatment was chosen.
    if hook.phase < Phase::Restore && intent != Intent::Undo {
        sight::enter(event, Stage::Preparing, now);
    }
    event.begin(Attempt {
        id: attempt,
        member: member.clone(),
        hook,
        intent,
        stint,
        on: on.clone(),
        begun_at: now,
        deadline,
        progress: None,
        blocked: None,
        outcome: None,
        late: None,
    });
    if let Some(slot) = state.slots.get_mut(member).filter(|slot| takes_away && slot.stint == stint) {
        slot.needs_restore = true;
    }
    Ok(())
}

fn waive(state: &mut State, id: &EventId, member: &Member, hook: HookId, why: &WaiverReason) -> Applied {
    let now = state.now;
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    // What puts back is owed, whatever happens to the VM meanwhile.
    if !steps::preparing(state, event).iter().any(|step| step.member == *member && step.id == hook) {
        return Err(Ignored::NotDue);
    }
    let event = open(state, id)?;
    if !matches!(event.stage(), Stage::Announced | Stage::Preparing) {
        return Err(Ignored::NotNow);
    }
    match why {
        WaiverReason::Unreachable if !event.is_user_initiated() => return Err(Ignored::NotDue),
        WaiverReason::Unreachable => {}
        // That takes an operator.
        WaiverReason::Skipped { .. } => return Err(Ignored::NotYours),
    }
    if event.waivers.iter().any(|waiver| waiver.member == *member && waiver.hook == hook) {
        return Err(Ignored::Repeated);
    }
    event.waivers.push(Waiver { member: member.clone(), hook, why: why.clone(), at: now });
    event.revision += 1;
    Ok(())
}

/// What a claim is for.
struct Decided<'a> {
    reason: Reason,
    decision: u64,
    stints: &'a [(Member, u64)],
}

fn claim(
    state: &mut State,
    by: &VmName,
    id: &EventId,
    approver: &VmName,
    Decided { reason, decision, stints }: Decided<'_>,
    until: Timestamp,
) -> Applied {
    let now = state.now;
    if state.leadership.as_ref().is_some_and(|leadership| leadership.by != *by) {
        return Err(Ignored::NotYours);
    }
    // It may have approved something alone, and has yet to say so; of a pair the other one may, too.
    if state.is_suspect(by) || state.is_pair_in_doubt() {
        return Err(Ignored::NotNow);
    }
    let event = state.open_event(id).ok_or(Ignored::UnknownEvent)?;
    if clearance(state, event, now) != Clearance::Clear(reason) || stints_of(state, event) != stints {
        return Err(Ignored::NotDue);
    }
    if event.decision != decision {
        return Err(Ignored::Changed);
    }
    if state.replicas.get(approver).and_then(|replica| replica.lists(id)) != Some(&Status::Scheduled) {
        return Err(Ignored::NotNow);
    }
    let is_in_force = event.open_claim().is_some_and(|claim| now < claim.until);
    if is_in_force || (event.is_accepted() && event.claimed_again_from().is_some_and(|at| now < at)) {
        return Err(Ignored::Repeated);
    }
    let attempt = state.next_attempt();
    let event = open(state, id)?;
    sight::enter(event, Stage::Claimed, now);
    let (approver, stints) = (approver.clone(), stints.into());
    event.claims.push(Claim { attempt, approver, reason, decision, stints, at: now, until, outcome: None });
    event.revision += 1;
    Ok(())
}

/// The stints in which the event keeps its members out.
pub fn stints_of(state: &State, event: &Event) -> Vec<(Member, u64)> {
    let members = needed(state, event).into_iter().map(|(member, _)| member);
    members.filter_map(|member| state.stint(&event.announcement.id, &member).map(|stint| (member, stint))).collect()
}

fn posted(state: &mut State, by: &VmName, id: &EventId, attempt: AttemptId, outcome: &PostOutcome) -> Applied {
    let now = state.now;
    // The event may have left the document while the reply was on its way; the post is recorded all the same.
    let event = known(state, id)?;
    let claim = event.claims.iter_mut().find(|claim| claim.attempt == attempt).ok_or(Ignored::UnknownAttempt)?;
    if claim.approver != *by {
        return Err(Ignored::NotYours);
    }
    if claim.outcome.is_some() {
        return Err(Ignored::Repeated);
    }
    claim.outcome = Some((outcome.clone(), now));
    event.revision += 1;
    let is_for_another = claim.decision != event.decision;
    if *outcome == PostOutcome::Accepted {
        // It may have been made up anew meanwhile.
        sight::enter(event, Stage::Claimed, now);
        sight::enter(event, Stage::Approved, now);
        event.reopened = event.reopened.or(is_for_another.then_some(now));
    }
    // It ended while nobody knew yet whether it had been approved.
    if event.ending == Some(Ending::Completed) && !event.may_have_happened() {
        event.ending = Some(Ending::Cancelled);
        sight::take_up(state);
    }
    Ok(())
}
