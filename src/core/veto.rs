//! Which hooks hold an event by themselves: more than one may, and whoever is to act has to know of each.

use alloc::vec::Vec;

use super::blocker::{Blocker, hook_failed, unsettled};
use super::event::Event;
use super::state::State;
use super::steps::{self, Progress, Step};
use super::time::Timestamp;
use super::workload::{Member, OnFailure};

/// Of each workload the first hook that failed for good and holds, asks for patience, or waits for who is away.
pub fn vetoes(state: &State, event: &Event, now: Timestamp) -> Vec<Blocker> {
    let mut vetoes: Vec<(Member, Blocker)> = Vec::new();
    for step in steps::preparing(state, event) {
        if let Some(veto) = veto(state, event, &step, now)
            && !vetoes.iter().any(|(member, _)| *member == step.member)
        {
            vetoes.push((step.member, veto));
        }
    }
    vetoes.into_iter().map(|(_, veto)| veto).collect()
}

fn veto(state: &State, event: &Event, step: &Step<'_>, now: Timestamp) -> Option<Blocker> {
    match steps::forward(event, step, now) {
        Progress::Failed(reason) if step.on_failure == OnFailure::Hold => Some(hook_failed(event, step, &reason)),
        _ => unsettled(state, event, step, now)
            .filter(|it| matches!(it, Blocker::HookBlocked { .. } | Blocker::WorkloadAway { .. })),
    }
}
