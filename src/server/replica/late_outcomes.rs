//! Reports outcomes of workloads for attempts that ended without these outcomes. Nothing waits for such an outcome; the
//! log records the outcome.

use std::sync::Arc;

use super::attempt_key::{find, outcome, parse};
use super::cluster::ClusterHandle;
use crate::hooks::HookOutcome;
use allclear_core::model::attempt::Attempt;
use allclear_core::model::command::{Command, FinishAttempt};
use allclear_core::model::id::WorkloadName;
use allclear_core::model::state::State;

/// Proposes the outcome once, where the outcome is new to the log.
pub fn report_late_outcomes(
    cluster: &Arc<ClusterHandle>,
    state: &State,
    workload: &WorkloadName,
    key: &str,
    ended: HookOutcome,
) {
    let outcome = outcome(ended);
    let is_news = |attempt: &Attempt| {
        let differs = attempt.outcome.as_ref().is_some_and(|(known, _)| known.as_str() != outcome.as_str());
        differs && attempt.late.is_none() && attempt.on == cluster.node.name && attempt.member.workload == *workload
    };
    let Some((event, attempt)) = parse(key).filter(|_| find(state, key).is_some_and(is_news)) else {
        return;
    };
    cluster.propose_once(Command::FinishAttempt(FinishAttempt { event, attempt, outcome }));
}
