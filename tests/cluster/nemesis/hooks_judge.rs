//! The part of the judge that is about what hooks did: that nothing is put back too early, run twice or left behind.

use std::collections::{BTreeMap, BTreeSet};

use allclear::wire::pb::allclear::operator::v1::Event;

use super::judge::{Finding, finding};
use super::record::{Record, Run};

/// Nothing is put back, and nothing taken for over, while the platform still lists the event.
pub(super) fn s6(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_listed = |id: &str, at| record.event(id).is_some_and(|event| event.ended.is_none_or(|ended| at < ended));
    for run in record.runs.iter().filter(|run| run.restores() && is_listed(&run.event, run.began)) {
        found.push(finding("S6", &run.event, format!("put back at {} while it was listed: {run:?}", run.began)));
    }
    for sighting in &record.sightings {
        let is_over = |stage: &str| ["restoring", "closed"].contains(&stage);
        let early = |event: &&Event| is_over(&event.stage) && is_listed(&event.id, sighting.answered);
        for event in sighting.events.iter().filter(early) {
            let why = format!("{} had it {} at {}", sighting.by, event.stage, sighting.answered);
            found.push(finding("S6", &event.id, why));
        }
    }
    found
}

/// An attempt is one replica's, hooks of one workload run one after the other within an event, and what counts as done
/// is what that attempt did.
pub(super) fn s7(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut runners: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for run in &record.runs {
        runners.entry(&run.attempt).or_default().insert(&run.on);
    }
    for (attempt, on) in runners.iter().filter(|(_, on)| on.len() > 1) {
        found.push(finding("S7", event_of(attempt), format!("{attempt} was run by {on:?}")));
    }
    let changes = |run: &&Run| run.intent != "confirm";
    for (place, run) in record.runs.iter().enumerate().filter(|(_, run)| changes(run)) {
        // Of one that was killed it is not known when.
        let Some((ended, _)) = run.ended else { continue };
        let same = |later: &&Run| changes(later) && later.is_of(&run.event, &run.vm, &run.workload);
        let beside = record.runs[place + 1..].iter().filter(same).find(|later| later.began < ended);
        found.extend(beside.map(|later| finding("S7", &run.event, format!("{run:?} ran beside {later:?}"))));
    }
    for (event, hook) in record.attempts().filter(|(_, hook)| hook.outcome.as_deref() == Some("done")) {
        let did = |run: &Run| run.attempt == hook.attempt && run.ended.is_some_and(|(_, code)| code == 0);
        if !record.runs.iter().any(did) {
            found.push(finding("S7", &event.id, format!("{} counts as done, and was not", hook.attempt)));
        }
    }
    found
}

/// Put back is what was touched, all of it and nothing else.
pub(super) fn s8(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in record.runs.iter().filter(|run| run.restores()) {
        let same = |other: &Run| other.prepares() && other.is_of(&run.event, &run.vm, &run.workload);
        let is_touched = record.runs.iter().any(|other| same(other) && other.began <= run.began);
        // What was to be run may have been: its replica was lost before the process could write a word.
        let may_be = record.attempts().any(|(event, hook)| {
            let prepares = !["restore", "ready"].contains(&hook.phase.as_str()) && hook.intent == "run";
            let is_it = event.id == run.event && hook.vm == run.vm && hook.workload == run.workload;
            prepares && is_it && hook.outcome.as_deref() != Some("done")
        });
        if !is_touched && !may_be {
            found.push(finding("S8", &run.event, format!("put back and never touched: {run:?}")));
        }
    }
    for run in record.runs.iter().filter(|run| run.prepares()) {
        let back = |other: &Run| other.restores() && other.is_of(&run.event, &run.vm, &run.workload);
        let is_over = record.event(&run.event).is_some_and(|event| event.ended.is_some());
        if is_over && !record.runs.iter().any(back) {
            found.push(finding("S8", &run.event, format!("touched and never put back: {run:?}")));
        }
    }
    found
}

fn event_of(attempt: &str) -> &str {
    attempt.rsplit_once('.').map_or(attempt, |(event, _)| event)
}
