//! Keys of attempts: the names of this VM's hook runs, and the corresponding attempts of the log.

use super::cluster::ClusterHandle;
use crate::hooks::HookOutcome;
use allclear_core::model::attempt::{Attempt, Outcome};
use allclear_core::model::command::bounded;
use allclear_core::model::id::{AttemptId, EventId, WorkloadName};
use allclear_core::model::state::State;
use allclear_core::schedule::attempts;

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

/// The word of the attempt's outcome in the log.
pub fn outcome_word(state: &State, key: &str) -> Option<String> {
    find(state, key)?.outcome.as_ref().map(|(outcome, _)| outcome.as_str().to_owned())
}

/// The log has an outcome of this attempt of a workload.
pub fn is_recorded(state: &State, workload: &WorkloadName, key: &str) -> bool {
    find(state, key).is_some_and(|attempt| attempt.member.workload == *workload && attempt.outcome.is_some())
}

/// The number of attempts by which the log may be ahead of the state of a replica that has just started.
const NOT_APPLIED_YET: u64 = 1_000;

/// The key is of no attempt of this workload. An attempt of a forgotten event may have existed, and the log may have a
/// later attempt that is not applied yet.
pub fn is_unknown(state: &State, workload: &WorkloadName, key: &str) -> bool {
    let Some((event, attempt)) = parse(key) else { return true };
    if attempt.0 > state.attempts {
        return attempt.0 - state.attempts > NOT_APPLIED_YET;
    }
    let event = state.event(&event);
    event.is_some_and(|event| event.attempt(attempt).is_none_or(|attempt| attempt.member.workload != *workload))
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

/// An attempt that was stopped because the event leaves less time than at the attempt's start has timed out.
pub(super) fn in_time(cluster: &ClusterHandle, key: &str, outcome: Outcome) -> Outcome {
    let state = cluster.state();
    let event = parse(key).and_then(|(event, _)| state.event(&event));
    let is_overrun = |event| find(&state, key).is_some_and(|it| attempts::is_overrun(event, it, cluster.time.now()));
    if outcome == Outcome::Cancelled && event.is_some_and(is_overrun) {
        return Outcome::TimedOut("the event left the hook less time than at its start".into());
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::event::Event;
    use allclear_core::model::id::VmName;
    use allclear_core::model::time::Timestamp;

    #[test]
    fn a_key_of_no_attempt_is_unknown_unless_the_attempt_may_exist() {
        let announcement = Announcement {
            id: EventId::new("e"),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::User,
            resource_type: String::new(),
            resources: Vec::new(),
            not_before: NotBefore::Unknown,
            description: String::new(),
            duration: None,
        };
        let event = Event::first_seen_as(announcement, VmName::new("a"), Timestamp(0));
        let mut state = State { attempts: 7, ..State::default() };
        state.open.insert(EventId::new("e"), event.into());
        let matches_none = |key| is_unknown(&state, &WorkloadName("pg".into()), key);
        assert!(["", "abc", "12345", "e.x", "e.7/db-0/pg/drain/0", "e.3", "e.30000"].into_iter().all(matches_none));
        assert!(!["forgotten.3", "e.8"].into_iter().any(matches_none));
    }

    #[test]
    fn an_attempt_is_found_again_by_its_key() {
        let event = EventId::new("E.1");
        assert_eq!(parse(&event.key_of(AttemptId(7))), Some((event, AttemptId(7))));
        assert_eq!(parse("no number"), None);
    }
}
