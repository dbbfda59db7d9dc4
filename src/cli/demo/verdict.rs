//! What must hold at the end of a demo, checked against what the cloud and the hooks themselves wrote down.

use std::collections::BTreeMap;

use super::moment::read;
use super::report::called;
use super::sight::Sight;
use crate::cli::demo_hook::Note;
use crate::fake_cloud::Post;
use crate::machine::id::{EventId, VmName};
use crate::machine::time::Timestamp;
use crate::simulator::cloud::{Approver, Cause, End, Event};
use crate::wire::pb::allclear::operator::v1 as shown;

/// Everything that is missing; nothing when all is well.
pub(super) fn missing(events: &[Event], posts: &[Post], sight: &Sight, notes: &[Note]) -> Vec<String> {
    let mut missing = Vec::new();
    for event in events {
        let posts: Vec<&Post> = posts.iter().filter(|post| post.event == event.id).collect();
        let found = match sight.event(&event.id) {
            Some(known) => of_event(event, &posts, known, sight, notes),
            None => vec!["no replica knows it".to_owned()],
        };
        missing.extend(found.into_iter().map(|what| format!("{}: {what}", called(event))));
    }
    missing
}

fn of_event(event: &Event, posts: &[&Post], known: &shown::Event, sight: &Sight, notes: &[Note]) -> Vec<String> {
    let mut missing = match &event.accepted {
        Some((at, by)) => of_approval(*at, by, posts, known, notes),
        None => of_no_approval(event, posts),
    };
    if event.ended.is_none() {
        missing.push("the cloud still lists it".into());
    }
    let not_closed = sight.not_closed(&event.id);
    if !not_closed.is_empty() {
        missing.push(format!("not closed for {}", not_closed.join(", ")));
    }
    missing.extend(of_runs(&event.id, notes));
    missing.extend(of_restoring(event, known));
    missing
}

/// One all-clear, decided by the cluster, after everything was prepared.
fn of_approval(at: Timestamp, by: &Approver, posts: &[&Post], known: &shown::Event, notes: &[Note]) -> Vec<String> {
    let mut missing = Vec::new();
    if posts.len() != 1 || !posts.iter().all(|post| post.took_effect) {
        let results: Vec<_> = posts.iter().map(|post| post.result.unwrap_or("lost")).collect();
        missing.push(format!("one approval that counts, not {} ({})", posts.len(), results.join(", ")));
    }
    let is_by = |approver: &str| matches!(by, Approver::Vm(vm) if *vm == VmName::new(approver));
    let accepted: Vec<_> =
        known.approvals.iter().filter(|approval| approval.outcome.as_deref() == Some("accepted")).collect();
    let [claim] = accepted.as_slice() else {
        missing.push(format!("one accepted approval in the cluster's record, not {}", accepted.len()));
        return missing;
    };
    if !is_by(&claim.approver) {
        missing.push(format!("the cluster named {} to post, and somebody else did", claim.approver));
    }
    let preparing: Vec<_> = known.hooks.iter().filter(|hook| hook.phase != "restore").collect();
    if preparing.is_empty() {
        missing.push("no hook ran before the all-clear".into());
    }
    for hook in preparing {
        let what = format!("{} on {}", hook.phase, hook.on);
        if hook.outcome.as_deref() != Some("done") {
            missing.push(format!("{what} ended as {}", hook.outcome.as_deref().unwrap_or("nothing")));
        }
        let is_before = hook.ended_at.as_deref().and_then(read) <= read(&claim.claimed_at);
        let is_its = |note: &&Note| note.attempt == hook.attempt && note.done;
        let really = notes.iter().find(is_its).map(|note| Timestamp(note.at_ms));
        if !is_before || hook.intent == "run" && really.is_none_or(|done| done > at) {
            missing.push(format!("{what} was not done before the all-clear"));
        }
    }
    missing
}

/// What the platform cancels or starts by itself, before anybody could approve, needs no approval.
fn of_no_approval(event: &Event, posts: &[&Post]) -> Vec<String> {
    let mut missing = Vec::new();
    let by_itself = match (&event.started, &event.ended) {
        (Some((_, Cause::Failure)), _) | (None, Some((_, End::Cancelled))) => true,
        (Some((_, Cause::Approved | Cause::NotBefore | Cause::Ordered)) | None, _) => false,
    };
    if !by_itself {
        missing.push("no all-clear was given, and the notice ran out".into());
    }
    if !posts.is_empty() {
        missing.push(format!("{} approvals were posted that came too late", posts.len()));
    }
    missing
}

/// Every hook was started once, whatever became of its replica.
fn of_runs(event: &EventId, notes: &[Note]) -> Vec<String> {
    let mut runs: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for note in notes.iter().filter(|note| EventId::new(&note.event) == *event && !note.done) {
        *runs.entry((&note.phase, &note.vm)).or_default() += 1;
    }
    let repeated = runs.into_iter().filter(|(_, count)| *count > 1);
    repeated.map(|((phase, vm), count)| format!("{phase} of {vm} was run {count} times")).collect()
}

/// Whatever was touched was put back, after the event was gone.
fn of_restoring(event: &Event, known: &shown::Event) -> Vec<String> {
    let mut touched: Vec<&str> = known
        .hooks
        .iter()
        .filter(|hook| hook.phase != "restore" && hook.intent == "run")
        .map(|hook| hook.vm.as_str())
        .collect();
    touched.sort_unstable();
    touched.dedup();
    let ended = event.ended.map(|(at, _)| at);
    let is_restored = |vm: &&str| {
        known.hooks.iter().any(|hook| {
            hook.phase == "restore"
                && hook.vm == *vm
                && hook.outcome.as_deref() == Some("done")
                && read(&hook.started_at) >= ended
        })
    };
    let left = touched.into_iter().filter(|vm| !is_restored(vm));
    left.map(|vm| format!("what was prepared on {vm} was not restored")).collect()
}
