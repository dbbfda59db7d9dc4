//! Keys of attempts: the names of this VM's hook runs, and the corresponding attempts of the log.

use crate::hooks::HookOutcome;
use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::command::bounded;
use allclear_core::model::id::{AttemptId, EventId, WorkloadName};
use allclear_core::model::state::State;

/// Reads a key made by `EventId::key_of`.
pub(super) fn parse(key: &str) -> Option<(EventId, AttemptId)> {
    let (event, attempt) = key.rsplit_once('.')?;
    Some((EventId::new(event), AttemptId(attempt.parse().ok()?)))
}

pub(super) fn find<'a>(state: &'a State, key: &str) -> Option<&'a Attempt> {
    let (event, attempt) = parse(key)?;
    state.event(&event)?.attempt(attempt)
}

/// The log waits for nothing more of this attempt.
pub fn is_settled(state: &State, key: &str) -> bool {
    find(state, key).is_none_or(|attempt| attempt.outcome.is_some())
}

/// The log has an outcome of this attempt of a workload.
pub fn is_recorded(state: &State, workload: &WorkloadName, key: &str) -> bool {
    find(state, key).is_some_and(|attempt| attempt.member.workload == *workload && attempt.outcome.is_some())
}

pub(super) fn outcome(ended: HookOutcome) -> Outcome {
    match ended {
        HookOutcome::Done => Outcome::Done,
        HookOutcome::NotApplicable => Outcome::NotApplicable,
        HookOutcome::NotDone => Outcome::NotDone,
        HookOutcome::Failed(reason) => Outcome::Failed(bounded(&reason)),
        HookOutcome::Blocked(reason) => Outcome::Blocked(bounded(&reason)),
        HookOutcome::TimedOut => Outcome::TimedOut("the hook did not end by its deadline".into()),
        HookOutcome::Cancelled => Outcome::Cancelled,
        HookOutcome::Unknown(reason) | HookOutcome::Lost(reason) => Outcome::Unknown(bounded(&reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_is_found_again_by_its_key() {
        let event = EventId::new("E.1");
        assert_eq!(parse(&event.key_of(AttemptId(7))), Some((event, AttemptId(7))));
        assert_eq!(parse("no number"), None);
    }
}
