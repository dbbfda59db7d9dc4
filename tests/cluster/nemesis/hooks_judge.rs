//! The part of the judge for the hooks' runs: nothing is restored too early, run twice or left unrestored.

use std::collections::{BTreeMap, BTreeSet};

use allclear::wire::pb::allclear::operator::v1::{Event, Step};

use super::judge::{Finding, finding};
use super::record::{Announced, Moment, Record, Run, Strike};

/// No restore runs while the platform still lists an approved event, and no replica treats an event as over while the
/// platform lists the event. Members of an event that does not proceed are given back, and restored, while the event is
/// announced.
pub(super) fn s6(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    let is_listed = |id: &str, at| record.event(id).is_some_and(|event| event.ended.is_none_or(|ended| at < ended));
    let is_going = |run: &Run| {
        let accepted = record.event(&run.event).and_then(|event| event.accepted.as_ref());
        accepted.is_some_and(|(since, _)| *since <= run.began) && is_listed(&run.event, run.began)
    };
    for run in record.runs.iter().filter(|run| run.restores() && is_going(run)) {
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

/// An attempt belongs to a single replica, hooks of a workload run in turn within an event, and an attempt counts as
/// done only by its own run.
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
        // The end time of a killed run is unknown.
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

/// A member is restored if hooks took the member away since its last restore, and in the end no member is left away: by
/// the hooks' own log, regardless of the hooks' events.
pub(super) fn s8(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in record.runs.iter().filter(|run| run.restores()) {
        let same =
            |other: &&Run| is_same_member(other, run) && other.began <= run.began && other.attempt != run.attempt;
        let earlier = || record.runs.iter().filter(same);
        let back = earlier().filter(|other| brings_back(other)).filter_map(|other| other.ended).map(|(at, _)| at).max();
        let is_touched = earlier().any(|other| other.prepares() && Some(other.began) >= back);
        // An assigned hook may have run: the replica was lost before the process could write a word.
        let may_be = record.attempts().any(|(_, hook)| {
            let prepares = !["restore", "ready"].contains(&hook.phase.as_str()) && hook.intent == "run";
            prepares && hook.vm == run.vm && hook.workload == run.workload && hook.outcome.as_deref() != Some("done")
        });
        // The member left once more during its return, before the log had the end of its restore.
        let left_again = record.attempts().any(|(event, hook)| {
            let is_of_return = event.id == run.event && hook.vm == run.vm && hook.phase == "restore";
            is_of_return && hook.outcome.as_deref() == Some("cancelled")
        });
        // `ready` follows its restore.
        if !is_touched && !may_be && !left_again && run.phase == "restore" {
            found.push(finding("S8", &run.event, format!("put back and never touched: {run:?}")));
        }
    }
    for run in record.runs.iter().filter(|run| run.disrupts()) {
        let later = |other: &&Run| is_same_member(other, run) && other.began >= run.began;
        let is_over = record.event(&run.event).is_some_and(|event| event.ended.is_some());
        if is_over && !record.runs.iter().filter(later).any(brings_back) {
            found.push(finding("S8", &run.event, format!("touched and never put back: {run:?}")));
        }
    }
    found
}

fn is_same_member(one: &Run, other: &Run) -> bool {
    one.vm == other.vm && one.workload == other.workload
}

fn brings_back(run: &Run) -> bool {
    run.phase == "restore" && run.intent == "run" && run.went_well()
}

/// S4, by the hooks' log: a member is out from the first hook that takes the member away until a restore has ended
/// well. No member is taken away beside other members of the group that are out, except by a last call, or by a user
/// who repairs a hang.
pub(super) fn s4_of_hooks(record: &Record) -> Vec<Finding> {
    let mut found = Vec::new();
    for run in record.runs.iter().filter(|run| run.disrupts()) {
        let Some(event) = record.event(&run.event) else { continue };
        let own = record.members(event);
        let others = record.vms.iter().map(String::as_str).filter(|vm| !own.contains(vm));
        let out: BTreeSet<&str> = others.filter(|vm| is_out(record, vm, &run.workload, run.began)).collect();
        if !out.is_empty() && out.len() + own.len() > record.max_unavailable && !is_excused(record, &run.event) {
            let why = format!("{run:?} while {out:?} were out");
            found.push(finding("S4", &run.event, why));
        }
    }
    found
}

/// True if hooks took the member away, for an event that had to wait for others, and no hook brought the member back.
fn is_out(record: &Record, vm: &str, workload: &str, at: Moment) -> bool {
    let own = || record.runs.iter().filter(|run| run.vm == vm && run.workload == workload);
    let back =
        own().filter(|run| brings_back(run)).filter_map(|run| run.ended).map(|(at, _)| at).filter(|back| *back <= at);
    let back = back.max();
    let mut since = own().filter(|run| run.disrupts() && run.began <= at && Some(run.began) >= back);
    since.any(|run| !is_excused(record, &run.event))
}

/// True if the event's last call came, or if a user requested the event during a fault of the event's VM: then the
/// event may have been a repair.
pub(super) fn is_excused(record: &Record, event: &str) -> bool {
    let is_called = |step: &Step| step.what.starts_with("last call");
    let is_struck = |event: &Announced| {
        let names = |strike: &Strike| record.members(event).iter().any(|vm| strike.what.contains(vm));
        record.strikes.iter().any(|strike| strike.to >= event.at && names(strike))
    };
    record.told(event).any(|told| told.timeline.iter().any(is_called))
        || record.event(event).is_some_and(|event| event.is_users && is_struck(event))
}

fn event_of(attempt: &str) -> &str {
    attempt.rsplit_once('.').map_or(attempt, |(event, _)| event)
}
