//! Conditions at the end of a demo, checked against the records of the cloud and of the hooks.

use std::collections::BTreeMap;

use super::narration::called;
use crate::demo_hook::Note;
use crate::fake_cloud::Post;
use crate::local_cluster::snapshot::ClusterSnapshot;
use allclear_cloud::{Approver, EventEnd, PlatformEvent, PlatformStartCause};
use allclear_core::model::document::EventType;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock::from_rfc3339;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Everything that is missing; nothing when all is well. A database keeps no notes of its hooks, and needs no hook
/// for some events.
pub(super) fn missing(
    events: &[PlatformEvent],
    posts: &[Post],
    sight: &ClusterSnapshot,
    notes: Option<&[Note]>,
) -> Vec<String> {
    let mut missing = Vec::new();
    for event in events {
        let posts: Vec<&Post> = posts.iter().filter(|post| post.event == event.id).collect();
        let found = match sight.event(&event.id) {
            Some(known) => of_event(event, &posts, known, sight, notes),
            None => vec!["no replica knows the event".to_owned()],
        };
        missing.extend(found.into_iter().map(|what| format!("{}: {what}", called(event))));
    }
    missing
}

fn of_event(
    event: &PlatformEvent,
    posts: &[&Post],
    known: &shown::Event,
    sight: &ClusterSnapshot,
    notes: Option<&[Note]>,
) -> Vec<String> {
    let mut missing = match &event.accepted {
        Some((at, by)) => of_approval(*at, by, posts, known, notes),
        None => of_no_approval(event, posts),
    };
    if event.ended.is_none() {
        missing.push("the fake cloud still lists the event".into());
    }
    let not_closed = sight.not_closed(&event.id);
    if !not_closed.is_empty() {
        missing.push(format!("not closed for {}", not_closed.join(", ")));
    }
    missing.extend(of_runs(&event.id, notes.unwrap_or_default()));
    missing.extend(of_restoring(event, known));
    missing
}

/// One all-clear, decided by the cluster, after all preparation was done.
fn of_approval(
    at: Timestamp,
    by: &Approver,
    posts: &[&Post],
    known: &shown::Event,
    notes: Option<&[Note]>,
) -> Vec<String> {
    let mut missing = Vec::new();
    if posts.len() != 1 || !posts.iter().all(|post| post.took_effect) {
        let results: Vec<_> = posts.iter().map(|post| post.result.unwrap_or("lost")).collect();
        missing.push(format!("one effective approval, not {} ({})", posts.len(), results.join(", ")));
    }
    let is_by = |approver: &str| matches!(by, Approver::Vm(vm) if *vm == VmName::new(approver));
    let accepted: Vec<_> =
        known.approvals.iter().filter(|approval| approval.outcome.as_deref() == Some("accepted")).collect();
    let [claim] = accepted.as_slice() else {
        missing.push(format!("one accepted approval in the cluster's record, not {}", accepted.len()));
        return missing;
    };
    if !is_by(&claim.approver) {
        missing.push(format!("the cluster assigned the approval to {}, another approver posted it", claim.approver));
    }
    let preparing = known.hooks.iter().enumerate().filter(|(_, hook)| prepares(hook));
    // Only the last attempt of a hook counts.
    let preparing: Vec<_> = preparing.filter(|(place, hook)| is_last(&known.hooks[place + 1..], hook)).collect();
    let is_idle = notes.is_none() && claim.reason == "nothing_to_prepare";
    if preparing.is_empty() && !is_idle {
        missing.push("no hook ran before the all-clear".into());
    }
    for (_, hook) in preparing {
        let what = format!("{} on {}", hook.phase, hook.on);
        if !is_prepared(hook) {
            missing.push(format!("{what} ended as {}", hook.outcome.as_deref().unwrap_or("nothing")));
        }
        let is_before = hook.ended_at.as_deref().and_then(from_rfc3339) <= from_rfc3339(&claim.claimed_at);
        let really = |notes: &[Note]| {
            let done = notes.iter().find(|note| note.attempt == hook.attempt && note.done);
            hook.intent != "run" || done.is_some_and(|done| done.at() <= at)
        };
        if !is_before || !notes.is_none_or(really) {
            missing.push(format!("{what} was not done before the all-clear"));
        }
    }
    missing
}

/// Whether the hook runs before the all-clear.
pub(super) fn prepares(hook: &shown::Hook) -> bool {
    !matches!(hook.phase.as_str(), "restore" | "ready")
}

/// Whether `later` has no further attempt of the hook.
fn is_last(later: &[shown::Hook], hook: &shown::Hook) -> bool {
    later.iter().all(|other| attempted(other) != attempted(hook))
}

fn attempted(hook: &shown::Hook) -> [&str; 4] {
    [&hook.vm, &hook.workload, &hook.phase, &hook.intent]
}

/// A hook without work, as of a replica with nothing to write to disk, counts as done.
fn is_prepared(hook: &shown::Hook) -> bool {
    matches!(hook.outcome.as_deref(), Some("done" | "not_applicable"))
}

/// An event that the platform cancels or starts before an approval was possible needs no approval.
fn of_no_approval(event: &PlatformEvent, posts: &[&Post]) -> Vec<String> {
    let mut missing = Vec::new();
    let by_itself = match (&event.started, &event.ended) {
        (Some((_, PlatformStartCause::Failure)), _) | (None, Some((_, EventEnd::Cancelled))) => true,
        (
            Some((_, PlatformStartCause::Approved | PlatformStartCause::NotBefore | PlatformStartCause::Ordered))
            | None,
            _,
        ) => false,
    };
    if !by_itself {
        let how = if event.started.is_some() { "the event started without" } else { "the event still waits for" };
        missing.push(format!("{how} an all-clear"));
    }
    if !posts.is_empty() {
        missing.push(format!("{} approvals were posted too late", posts.len()));
    }
    missing
}

/// Every hook was started once, even if its replica was killed.
fn of_runs(event: &EventId, notes: &[Note]) -> Vec<String> {
    let mut runs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for note in notes.iter().filter(|note| EventId::new(&note.event) == *event && !note.done) {
        *runs.entry((&note.phase, &note.vm)).or_default() += 1;
    }
    let repeated = runs.into_iter().filter(|(_, count)| *count > 1);
    repeated.map(|((phase, vm), count)| format!("{phase} of {vm} was run {count} times")).collect()
}

/// Every prepared workload was restored after the end of the event, except on a deleted VM.
fn of_restoring(event: &PlatformEvent, known: &shown::Event) -> Vec<String> {
    if event.plan.kind == EventType::Terminate && event.started.is_some() {
        return Vec::new();
    }
    let takes_away = |hook: &&shown::Hook| prepares(hook) && hook.phase != "checkpoint" && hook.intent == "run";
    let mut taken: Vec<&str> = known.hooks.iter().filter(takes_away).map(|hook| hook.vm.as_str()).collect();
    taken.sort_unstable();
    taken.dedup();
    let ended = event.ended.map(|(at, _)| at);
    let is_restored = |vm: &&str| {
        known.hooks.iter().any(|hook| {
            hook.phase == "restore"
                && hook.vm == *vm
                && hook.outcome.as_deref() == Some("done")
                && from_rfc3339(&hook.started_at) >= ended
        })
    };
    let left = taken.into_iter().filter(|vm| !is_restored(vm));
    left.map(|vm| format!("the prepared workload on {vm} was not restored")).collect()
}

#[cfg(test)]
mod tests;
