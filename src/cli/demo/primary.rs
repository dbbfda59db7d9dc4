//! Where the primary of a database that dials in is, and whether it was where it may be.

use serde::Serialize;

use super::report::called;
use crate::cli::stage::VMS;
use crate::cli::stage::members::Said;
use crate::cli::stage::sight::Sight;
use crate::machine::id::VmName;
use crate::machine::time::Timestamp;
use crate::replica::clock;
use crate::simulator::cloud::{Cause, Event};
use crate::wire::pb::allclear::operator::v1 as shown;

/// Also when maintenance goes through everybody: away from the first, and once more when it was moved to the second.
const MOST_MOVES: usize = 2;

/// As the database itself has it.
#[derive(Default)]
pub(super) struct Primary {
    /// Who was it from when on; the last one still is.
    held: Vec<(String, Timestamp)>,
}

#[derive(Serialize)]
pub(super) struct Move {
    pub(super) at: String,
    pub(super) from: String,
    pub(super) to: String,
}

impl Primary {
    pub(super) fn now(&self) -> Option<&str> {
        self.held.last().map(|(vm, _)| vm.as_str())
    }

    /// Takes in where it is; tells when it has moved.
    pub(super) fn see(&mut self, vm: &str, since: Timestamp) -> Option<Said> {
        let before = self.now().map(str::to_owned);
        if before.as_deref() == Some(vm) {
            return None;
        }
        self.held.push((vm.to_owned(), since));
        Some(Said { at: since, vm: before?, what: format!("the primary has moved from here to {vm}") })
    }

    pub(super) fn moves(&self) -> Vec<Move> {
        let pairs = self.held.iter().zip(self.held.iter().skip(1));
        pairs
            .map(|((from, _), (to, at))| Move { at: clock::rfc3339(*at), from: from.clone(), to: to.clone() })
            .collect()
    }

    /// Everything that is not as it should be at the end.
    pub(super) fn missing(&self, events: &[Event], sight: &Sight) -> Vec<String> {
        let mut missing = Vec::new();
        let moves = self.held.len().saturating_sub(1);
        if moves > MOST_MOVES {
            missing.push(format!("the primary moved {moves} times instead of {MOST_MOVES} at the most"));
        }
        let known = events.iter().filter_map(|event| sight.event(&event.id));
        let failovers = known
            .flat_map(|event| &event.hooks)
            .filter(|hook| hook.phase == "failover" && hook.intent == "run" && hook.outcome.as_deref() == Some("done"));
        let failovers = failovers.count();
        if failovers != moves {
            missing.push(format!("failovers that were done: {failovers}, but moves of the primary: {moves}"));
        }
        for event in events {
            let there = event.plan.resources.iter().find(|vm| self.was_on(vm, event));
            missing.extend(there.map(|vm| format!("{}: the primary was on {vm} after the all-clear", called(event))));
        }
        missing.extend(self.not_registered(sight));
        missing
    }

    /// Between the all-clear, or a start without one, and the end; a machine that fails asks nobody.
    fn was_on(&self, vm: &VmName, event: &Event) -> bool {
        let started = event.started.filter(|(_, cause)| *cause != Cause::Failure).map(|(at, _)| at);
        let approved = event.accepted.as_ref().map(|(at, _)| *at);
        let Some(from) = started.into_iter().chain(approved).min() else { return false };
        let to = event.ended.map_or(clock::now(), |(at, _)| at);
        let ends = self.held.iter().skip(1).map(|(_, since)| *since).chain([Timestamp(i64::MAX)]);
        self.held.iter().zip(ends).any(|((name, since), end)| VmName::new(name) == *vm && *since < to && from < end)
    }

    /// What the cluster does not know of the database. It knows only whom it was told of by dialling in: no
    /// configuration names the database.
    pub(super) fn not_registered(&self, sight: &Sight) -> Option<String> {
        for (asked, answer) in sight.answers() {
            let is_it = |workload: &&shown::Workload, vm| workload.vm == vm && workload.connected;
            for vm in VMS {
                let role = if self.now() == Some(vm) { "primary" } else { "replica" };
                match answer.status.workloads.iter().find(|workload| is_it(workload, vm)) {
                    None => return Some(format!("for {asked}, no database has dialled in on {vm}")),
                    Some(known) if known.role != role => {
                        return Some(format!("for {asked}, {vm} is {}, not {role}", known.role));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    /// For people.
    pub(super) fn told(&self) -> String {
        let way: Vec<&str> = self.held.iter().map(|(vm, _)| vm.as_str()).collect();
        let moves = match way.len().saturating_sub(1) {
            1 => "1 move".to_owned(),
            moves => format!("{moves} moves"),
        };
        format!("The primary was on {}: {moves}", way.join(", then on "))
    }
}
