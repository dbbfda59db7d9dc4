//! The failure of an event in a trace: a hook failed, or the event started before all preparations were done.

use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::claim::{PostOutcome, Reason};
use allclear_core::model::event::Event;
use allclear_core::model::state::State;
use allclear_core::model::treatment::Action;
use allclear_core::model::workload::Intent;
use allclear_core::start_cause::StartCause;

pub(super) struct TraceFailure {
    /// A value of a small fixed set.
    pub(super) kind: &'static str,
    pub(super) why: String,
}

pub(super) fn of(state: &State, event: &Event) -> Option<TraceFailure> {
    hook_failed(state, event).or_else(|| unprepared(event))
}

/// True for outcomes that need an operator's attention; a blocked or cancelled hook, or a check with the answer "not
/// done", has not failed.
pub(super) fn is_failure(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Failed(_) | Outcome::TimedOut(_) | Outcome::Unknown(_) => true,
        Outcome::Done | Outcome::NotApplicable | Outcome::NotDone | Outcome::Blocked(_) | Outcome::Cancelled => false,
    }
}

/// The failure of a hook's last forward attempt, unless a waiver covers the hook.
fn hook_failed(state: &State, event: &Event) -> Option<TraceFailure> {
    let is_last = |attempt: &&Attempt| {
        event.forward_attempts_of(&attempt.member, attempt.hook).next_back().is_some_and(|last| last.id == attempt.id)
    };
    let is_waived = |attempt: &Attempt| {
        event.waivers.iter().any(|waiver| waiver.member == attempt.member && waiver.hook == attempt.hook)
    };
    let forward = event.attempts.iter().filter(|attempt| attempt.intent != Intent::Undo);
    forward.filter(is_last).filter(|attempt| !is_waived(attempt)).find_map(|attempt| {
        let (outcome, _) = attempt.outcome.as_ref().filter(|(outcome, _)| is_failure(outcome))?;
        let (hook, word) = (state.hook_name(&attempt.member, attempt.hook), outcome.as_str());
        let why = outcome.reason().map_or_else(|| format!("{hook}: {word}"), |why| format!("{hook}: {word}: {why}"));
        Some(TraceFailure { kind: "hook_failed", why })
    })
}

fn unprepared(event: &Event) -> Option<TraceFailure> {
    let treatment = event.treatment.as_ref().filter(|treatment| treatment.action == Action::Prepare)?;
    let kind = match event.start_cause()? {
        StartCause::Approved => {
            let accepted = event.claims.iter().find(|claim| claim.outcome_is(&PostOutcome::Accepted));
            let reason = accepted.map(|claim| claim.reason);
            match reason.or(event.has_isolated_approval().then_some(Reason::IsolatedApproval))? {
                Reason::Prepared | Reason::NothingToPrepare | Reason::Policy => return None,
                reason @ (Reason::BudgetSpent | Reason::IsolatedApproval | Reason::Operator) => reason.as_str(),
            }
        }
        cause @ (StartCause::NoticeExpired | StartCause::Platform | StartCause::ApprovedElsewhere) => cause.as_str(),
    };
    Some(TraceFailure {
        kind,
        why: format!("the event started before the preparation by the rule \"{}\" was complete", treatment.rule),
    })
}
