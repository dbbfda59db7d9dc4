//! The fold: `apply` runs on every replica for every entry of the log, and again after a restart.
//!
//! It is total and has no clock. Every guard stands here: what a planner or an executor checked before is only a
//! hint, and an illegal, repeated or late command is ignored with its reason.

pub mod access;
pub mod attempts;
pub mod departure;
pub mod drill;
pub mod exclusion;
pub mod impact;
pub mod notification;
pub mod operator;
pub mod registry;
pub mod report;
pub mod settle;
pub mod slots;
pub mod suspicion;
pub mod version;

use crate::apply::access::{Applied, known, open};
use crate::apply::operator::Asker;
use crate::model::attempt::{Attempt, Waiver, WaiverReason};
use crate::model::blocker::Clearance;
use crate::model::claim::{Claim, PostOutcome, Reason};
use crate::model::command::{Command, Entry, Ignored, Verdict};
use crate::model::document::Status;
use crate::model::event::Ending;
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::{Action, Treatment};
use crate::model::workload::{Intent, Member, Phase};
use crate::schedule::affected::stints_of;
use crate::schedule::clearance::clearance;
use crate::schedule::needs;
use crate::schedule::next;
use crate::schedule::peers::may_run_on;
use crate::schedule::step;

/// Folds one entry into the state.
pub fn apply(state: &mut State, entry: &Entry) -> Verdict {
    state.now = state.now.max(entry.at);
    match dispatch(state, &entry.by, &entry.command) {
        Ok(()) => {
            drill::give_way(state);
            report::reconsider(state);
            settle::settle(state);
            debug_assert_eq!(crate::verify::invariants::violated(state), None, "after {entry:?}");
            Verdict::Applied
        }
        Err(ignored) => Verdict::Ignored(ignored),
    }
}

fn dispatch(state: &mut State, by: &VmName, command: &Command) -> Applied {
    match command {
        Command::Register { workloads, groups } => registry::register(state, by, workloads, groups),
        Command::Report { after, document } => report::report(state, by, *after, document),
        Command::Discount { replica } => report::discount(state, replica),
        Command::Treat { event, treatment } => treat(state, event, treatment),
        Command::Begin { event, member, hook, intent, on, deadline } => {
            begin(state, event, member, *hook, *intent, on, *deadline)
        }
        Command::Advance { event, attempt, progress } => attempts::advance(state, by, event, *attempt, progress),
        Command::Settle { event, attempt, outcome } => attempts::settle(state, by, event, *attempt, outcome),
        Command::Expire { event, attempt } => attempts::expire(state, event, *attempt),
        Command::Waive { event, member, hook, why } => waive(state, event, member, *hook, why),
        Command::Claim { event, approver, reason, decision, stints, until } => {
            let made = Decided { reason: *reason, decision: *decision, stints };
            claim(state, by, event, approver, made, *until)
        }
        Command::Posted { event, attempt, outcome } => posted(state, by, event, *attempt, outcome),
        Command::Take { event } => slots::take(state, event),
        Command::GiveBack { event } => slots::give_back(state, event),
        Command::LastCall { event } => slots::last_call(state, event),
        Command::Removed { replica } => slots::removed(state, replica),
        Command::Contact { replica, reachable } => slots::contact(state, replica, *reachable),
        Command::Forget { event } => report::forget(state, event),
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
        Command::Enlist { workload } => registry::enlist(state, by, workload),
        Command::Delist { workload } => registry::delist(state, by, workload),
        Command::Note { conditions } => registry::note(state, by, conditions),
        Command::Extend { event, attempt, deadline } => attempts::extend(state, by, event, *attempt, *deadline),
        Command::Observed { event, lasted } => impact::observed(state, by, event, *lasted),
        Command::Notified { told } => notification::notified(state, told),
        Command::Raise { version } => version::raise(state, by, *version),
    }
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
    let prepares = treatment.action == Action::Prepare && !needs::preparing(state, &state.open[id]).is_empty();
    if prepares {
        report::enter(open(state, id)?, Stage::Preparing, now);
    }
    // Where there is room it need not be asked for: one entry less before the first hook.
    let _ = slots::take(state, id);
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
    let is_it = |next: &step::Next<'_>| next.step.member == *member && next.step.id == hook && next.intent == intent;
    let due = next::next(state, event, now);
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
        report::enter(event, Stage::Preparing, now);
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
    if !needs::preparing(state, event).iter().any(|step| step.member == *member && step.id == hook) {
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
    report::enter(event, Stage::Claimed, now);
    let (approver, stints) = (approver.clone(), stints.into());
    event.claims.push(Claim { attempt, approver, reason, decision, stints, at: now, until, outcome: None });
    event.revision += 1;
    Ok(())
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
        report::enter(event, Stage::Claimed, now);
        report::enter(event, Stage::Approved, now);
        event.reopened = event.reopened.or(is_for_another.then_some(now));
    }
    // It ended while nobody knew yet whether it had been approved.
    if event.ending == Some(Ending::Completed) && !event.may_have_happened() {
        event.ending = Some(Ending::Cancelled);
        report::take_up(state);
    }
    Ok(())
}
