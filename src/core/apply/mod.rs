//! Applies one entry of the log to the state: [`apply`] runs on every replica for every entry, and again after a
//! restart.
//!
//! `apply` never fails and has no clock. Every guard is in `apply`: a check of a planner or of an executor is only a
//! hint, and an illegal, repeated or late command is ignored with its reason.

pub mod access;
mod approvals;
pub mod attempts;
mod budgets;
pub mod decommission;
pub mod drill;
pub mod event_end;
pub mod exclusion;
pub mod impact;
pub mod notification;
pub mod operator;
pub mod reconciliation;
pub mod registry;
pub mod report;
pub mod slot_updates;
pub mod slots;
pub mod stages;
pub mod version;
mod waivers;

use crate::apply::access::{Applied, open};
use crate::apply::operator::Requester;
use crate::model::attempt::Attempt;
use crate::model::command::{
    AbandonRestores, ApplyResult, BeginAttempt, BeginDrill, BeginLastCall, BeginLeadership, ChooseTreatment,
    ClearSuspect, Command, DecommissionReplica, DeregisterSession, EndDrill, Entry, ExcludeReplica, ExpireAttempt,
    ExtendAttempt, FinishAttempt, ForgetEvent, GiveBackSlots, MarkDocumentStale, RaiseVersion, ReadmitReplica,
    ReconcileJournal, RecordDeliveries, RecordImpact, RecordReachability, RegisterSession, RegisterWorkloads,
    Rejection, ReportDocument, ReportProgress, RequestAction, SuspectReplica, TakeSlots, UpdateConditions,
};
use crate::model::id::{EventId, VmName};
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::treatment::{Action, Treatment};
use crate::model::workload::{Intent, Member, Phase};
use crate::schedule::next_steps;
use crate::schedule::peers::may_run_on;
use crate::schedule::required;
use crate::schedule::step;

/// Applies one entry to the state.
pub fn apply(state: &mut State, entry: &Entry) -> ApplyResult {
    let last_entry = state.now;
    state.now = last_entry.max(entry.at);
    match dispatch(state, &entry.by, &entry.command) {
        Ok(()) => {
            if let Command::BeginLeadership(_) = entry.command {
                reconciliation::restart_budgets(state, last_entry);
            }
            drill::stop_drill_for_event(state);
            stages::reopen_after_expired_claims(state);
            slot_updates::update_slots(state);
            debug_assert_eq!(crate::verify::invariants::violated(state), None, "after {entry:?}");
            ApplyResult::Applied
        }
        Err(ignored) => ApplyResult::Rejected(ignored),
    }
}

fn dispatch(state: &mut State, by: &VmName, command: &Command) -> Applied {
    match command {
        Command::RegisterWorkloads(RegisterWorkloads { workloads, groups }) => {
            registry::register_workloads(state, by, workloads, groups)
        }
        Command::ReportDocument(ReportDocument { after, document }) => {
            report::report_document(state, by, *after, document)
        }
        Command::MarkDocumentStale(MarkDocumentStale { replica }) => report::mark_document_stale(state, replica),
        Command::ChooseTreatment(ChooseTreatment { event, treatment }) => choose_treatment(state, event, treatment),
        Command::BeginAttempt(begun) => begin_attempt(state, begun),
        Command::ReportProgress(ReportProgress { event, attempt, progress }) => {
            attempts::report_progress(state, by, event, *attempt, progress)
        }
        Command::FinishAttempt(FinishAttempt { event, attempt, outcome }) => {
            attempts::finish_attempt(state, by, event, *attempt, outcome)
        }
        Command::ExpireAttempt(ExpireAttempt { event, attempt }) => attempts::expire_attempt(state, event, *attempt),
        Command::WaiveHook(waived) => waivers::waive_hook(state, waived),
        Command::ClaimApproval(claim) => approvals::claim_approval(state, by, claim),
        Command::RecordPost(post) => approvals::record_post(state, by, post),
        Command::TakeSlots(TakeSlots { event }) => slots::take_slots(state, event),
        Command::GiveBackSlots(GiveBackSlots { event }) => slots::give_back_slots(state, event),
        Command::BeginLastCall(BeginLastCall { event }) => slots::begin_last_call(state, event),
        Command::AbandonRestores(AbandonRestores { replica }) => slots::abandon_restores(state, replica),
        Command::RecordReachability(RecordReachability { replica, reachable }) => {
            slots::record_reachability(state, replica, *reachable)
        }
        Command::ForgetEvent(ForgetEvent { event }) => event_end::forget_event(state, event),
        Command::BeginLeadership(BeginLeadership { term, turn, voters }) => {
            reconciliation::begin_leadership(state, by, *term, *turn, voters)
        }
        Command::SuspectReplica(SuspectReplica { replica, number }) => {
            reconciliation::suspect_replica(state, replica, *number)
        }
        Command::ClearSuspect(ClearSuspect { replica }) => reconciliation::clear_suspect(state, replica),
        Command::ExcludeReplica(ExcludeReplica { replica }) => exclusion::exclude_replica(state, replica),
        Command::ReadmitReplica(ReadmitReplica { replica }) => exclusion::readmit_replica(state, replica),
        Command::ReconcileJournal(ReconcileJournal { number, journal }) => {
            reconciliation::reconcile_journal(state, by, *number, journal)
        }
        Command::DecommissionReplica(DecommissionReplica { replica }) => {
            decommission::decommission_replica(state, replica)
        }
        Command::BeginDrill(BeginDrill { announcement, mode, who }) => {
            drill::begin_drill(state, by, announcement, *mode, who)
        }
        Command::EndDrill(EndDrill { event }) => drill::end_drill(state, event),
        Command::RequestAction(RequestAction { what, who, reason }) => {
            operator::request_action(state, what, Requester { who, reason })
        }
        Command::RegisterSession(RegisterSession { workload }) => registry::register_session(state, by, workload),
        Command::DeregisterSession(DeregisterSession { workload, forced }) => {
            registry::deregister_session(state, by, workload, *forced)
        }
        Command::UpdateConditions(UpdateConditions { conditions }) => {
            registry::update_conditions(state, by, conditions)
        }
        Command::ExtendAttempt(ExtendAttempt { event, attempt, deadline }) => {
            attempts::extend_attempt(state, by, event, *attempt, *deadline)
        }
        Command::RecordImpact(RecordImpact { event, lasted }) => impact::record_impact(state, by, event, *lasted),
        Command::RecordDeliveries(RecordDeliveries { deliveries: told }) => {
            notification::record_deliveries(state, told)
        }
        Command::RaiseVersion(RaiseVersion { version }) => version::raise_version(state, by, *version),
    }
}

fn choose_treatment(state: &mut State, id: &EventId, treatment: &Treatment) -> Applied {
    let now = state.now;
    let event = open(state, id)?;
    let is_moved = event.has_missed_window(now);
    if event.treatment.is_some() && !is_moved {
        return Err(Rejection::Repeated);
    }
    if event.stage().is_over() {
        return Err(Rejection::NotNow);
    }
    let present = event.treatment.take().filter(|_| is_moved);
    // After a missed window, only the time of the preparation is new.
    event.treatment = Some(match present {
        Some(present) => Treatment { opening: treatment.opening, missed: present.opening, ..present },
        None => treatment.clone(),
    });
    event.treated = Some(now);
    event.revision += 1;
    let prepares = treatment.action == Action::Prepare && !required::required_steps(state, &state.open[id]).is_empty();
    if prepares {
        stages::enter_stage(open(state, id)?, Stage::Preparing, now);
    }
    // Free slots are taken without a command: one entry less before the first hook.
    let _ = slots::take_slots(state, id);
    Ok(())
}

fn begin_attempt(state: &mut State, begun: &BeginAttempt) -> Applied {
    let BeginAttempt { event: id, member, on, .. } = begun;
    let (hook, intent, deadline) = (begun.hook, begun.intent, begun.deadline);
    let now = state.now;
    if !state.replicas.contains_key(on) {
        return Err(Rejection::UnknownReplica);
    }
    let event = state.open_event(id).ok_or(Rejection::UnknownEvent)?;
    let is_it = |next: &step::Next<'_>| next.step.member == *member && next.step.id == hook && next.intent == intent;
    let due = next_steps::next_steps(state, event, now);
    let step = &due.iter().find(|next| is_it(next)).ok_or(Rejection::NotDue)?.step;
    let stint = step.stint;
    let there = Member { vm: on.clone(), workload: member.workload.clone() };
    // Hooks of the former registration are run by the replica itself, regardless of the session that is connected now.
    let is_former = state.workload(member).is_none_or(|workload| workload.hook(hook).is_none());
    if !may_run_on(state, event, step, intent, on) || (state.is_absent(&there) && !is_former) {
        return Err(Rejection::NotDue);
    }
    // The planner may not have known yet that less time is left.
    let ends = if intent == Intent::Undo { None } else { event.latest_end_of_phase(hook.phase) };
    let deadline = ends.map_or(deadline, |ends| ends.min(deadline));
    let takes_away = hook.phase.is_disruptive() && intent == Intent::Run && !event.is_dry_run();
    let attempt = state.next_attempt();
    let event = open(state, id)?;
    // A workload may have registered after the treatment was chosen.
    if hook.phase < Phase::Restore && intent != Intent::Undo {
        stages::enter_stage(event, Stage::Preparing, now);
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
