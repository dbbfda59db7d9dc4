//! Location of a database's primary, and whether this VM was allowed to have the primary.

use serde::Serialize;

use super::narration::called;
use crate::local_cluster::VMS;
use crate::local_cluster::members::MemberReport;
use crate::local_cluster::snapshot::ClusterSnapshot;
use allclear_cloud::{PlatformEvent, PlatformStartCause};
use allclear_core::model::document::EventType;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_server::replica::clock;
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The maximum even when maintenance affects every VM: a move away from the first VM, and one more move away from the
/// second.
const MOST_MOVES: usize = 2;

/// The primary as reported by the database itself.
#[derive(Default)]
pub(super) struct Primary {
    /// The last entry is the current primary.
    held: Vec<PrimaryStay>,
}

/// The time in which a VM certainly had the primary.
struct PrimaryStay {
    vm: String,
    since: Timestamp,
    /// `None` for the current primary.
    until: Option<Timestamp>,
}

#[derive(Serialize)]
pub(super) struct PrimaryMove {
    pub(super) at: String,
    pub(super) from: String,
    pub(super) to: String,
}

impl Primary {
    pub(super) fn now(&self) -> Option<&str> {
        self.held.last().map(|stay| stay.vm.as_str())
    }

    /// Records the current primary, and the time until which the primary before certainly was the primary; returns a
    /// report of a move.
    pub(super) fn see(&mut self, vm: &str, since: Timestamp, left: Timestamp) -> Option<MemberReport> {
        let before = self.now().map(str::to_owned);
        if before.as_deref() == Some(vm) {
            return None;
        }
        if let Some(stay) = self.held.last_mut() {
            stay.until = Some(left);
        }
        self.held.push(PrimaryStay { vm: vm.to_owned(), since, until: None });
        Some(MemberReport {
            at: since,
            who: "member",
            vm: before?,
            what: format!("the primary has moved from here to {vm}"),
        })
    }

    pub(super) fn moves(&self) -> Vec<PrimaryMove> {
        let pairs = self.held.iter().zip(self.held.iter().skip(1));
        pairs
            .map(|(from, to)| PrimaryMove { at: clock::rfc3339(to.since), from: from.vm.clone(), to: to.vm.clone() })
            .collect()
    }

    /// All faults at the end.
    pub(super) fn missing(&self, events: &[PlatformEvent], sight: &ClusterSnapshot) -> Vec<String> {
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
        let freezes = |event: &&PlatformEvent| event.plan.kind == EventType::Freeze;
        for event in events.iter().filter(|event| !freezes(event)) {
            let there = event.plan.resources.iter().find(|vm| self.was_on(vm, event));
            missing.extend(there.map(|vm| format!("{}: the primary was on {vm} after the all-clear", called(event))));
        }
        missing.extend(self.not_registered(sight));
        missing
    }

    /// Whether the primary was on the VM during the impact: between the all-clear, or a start without an all-clear,
    /// and the end. A failing machine needs no all-clear.
    fn was_on(&self, vm: &VmName, event: &PlatformEvent) -> bool {
        let started = event.started.filter(|(_, cause)| *cause != PlatformStartCause::Failure).map(|(at, _)| at);
        let approved = event.accepted.as_ref().map(|(at, _)| *at);
        let Some(from) = started.into_iter().chain(approved).min() else { return false };
        let to = event.ended.map_or(clock::now(), |(at, _)| at);
        let is_still = |stay: &PrimaryStay| stay.until.is_none_or(|until| from < until);
        self.held.iter().any(|stay| VmName::new(&stay.vm) == *vm && stay.since < to && is_still(stay))
    }

    /// Differences between the database and the cluster's state: connected or configured workloads, and the primary.
    pub(super) fn not_registered(&self, sight: &ClusterSnapshot) -> Option<String> {
        for (asked, answer) in sight.answers() {
            let is_it = |workload: &&shown::Workload, vm| workload.vm == vm && workload.connected;
            for vm in VMS {
                let role = if self.now() == Some(vm) { "primary" } else { "replica" };
                match answer.status.workloads.iter().find(|workload| is_it(workload, vm)) {
                    None => return Some(format!("for {asked}, there is no database on {vm}")),
                    Some(known) if known.role != role => {
                        return Some(format!("for {asked}, {vm} is {}, not {role}", known.role));
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    /// The primary's moves as text for people.
    pub(super) fn told(&self) -> String {
        let way: Vec<&str> = self.held.iter().map(|stay| stay.vm.as_str()).collect();
        let moves = match way.len().saturating_sub(1) {
            1 => "1 move".to_owned(),
            moves => format!("{moves} moves"),
        };
        format!("The primary was on {}: {moves}", way.join(", then on "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local_cluster::snapshot::{ReplicaSnapshot, ReplicaStatus};
    use allclear_cloud::{Approver, EventEnd, EventPlan};
    use allclear_core::model::document::Source;
    use allclear_core::model::id::EventId;

    /// An event approved at 3 s and ended at 5 s.
    fn event(vm: &str) -> PlatformEvent {
        PlatformEvent {
            id: EventId::new("E"),
            plan: EventPlan::new(EventType::Reboot, Source::Platform, vec![VmName::new(vm)]),
            announced_at: Timestamp(0),
            not_before: Timestamp(20_000),
            accepted: Some((Timestamp(3_000), Approver::Vm(VmName::new("db-1")))),
            started: Some((Timestamp(4_000), PlatformStartCause::Approved)),
            ended: Some((Timestamp(5_000), EventEnd::Finished)),
            moved: 0,
        }
    }

    /// The snapshot of a replica with `failovers` completed failovers and the primary on this VM.
    fn sight(failovers: usize, primary: &str) -> ClusterSnapshot {
        let (phase, intent, outcome) = ("failover".into(), "run".into(), Some("done".into()));
        let hook = shown::Hook { phase, intent, outcome, ..shown::Hook::default() };
        let event = shown::Event { id: "e".into(), hooks: vec![hook; failovers], ..shown::Event::default() };
        let workload = |vm: &str| shown::Workload {
            vm: vm.into(),
            role: if vm == primary { "primary" } else { "replica" }.into(),
            connected: true,
            ..shown::Workload::default()
        };
        let workloads = VMS.into_iter().map(workload).collect();
        let answer =
            ReplicaStatus { status: shown::Status { workloads, ..shown::Status::default() }, events: vec![event] };
        ClusterSnapshot { replicas: vec![ReplicaSnapshot { name: "db-2".into(), answer: Some(answer.into()) }] }
    }

    fn judged(way: &[(&str, i64)], of: &str, sight: &ClusterSnapshot) -> String {
        let mut primary = Primary::default();
        for (vm, at) in way {
            primary.see(vm, Timestamp(*at), Timestamp(*at));
        }
        primary.missing(&[event(of)], sight).join("\n")
    }

    #[test]
    fn a_primary_that_left_before_the_all_clear_is_where_it_may_be() {
        assert_eq!(judged(&[("db-0", 0), ("db-1", 2_000)], "db-0", &sight(1, "db-1")), "");
        assert_eq!(judged(&[("db-0", 0), ("db-1", 5_000)], "db-1", &sight(1, "db-1")), "", "it came when all was over");
    }

    #[test]
    fn a_primary_that_is_where_a_machine_goes_down_is_found() {
        let expected = "Reboot of db-0: the primary was on db-0 after the all-clear";
        assert_eq!(judged(&[("db-0", 0)], "db-0", &sight(0, "db-0")), expected);
        assert_eq!(judged(&[("db-0", 0), ("db-1", 3_500)], "db-0", &sight(1, "db-1")), expected, "it left too late");
        assert_eq!(judged(&[("db-1", 0), ("db-0", 4_500)], "db-0", &sight(1, "db-0")), expected, "it came too early");
    }

    #[test]
    fn a_primary_that_was_left_in_time_is_well_though_the_first_write_elsewhere_comes_late() {
        let mut primary = Primary::default();
        primary.see("db-0", Timestamp(0), Timestamp(0));
        primary.see("db-1", Timestamp(3_500), Timestamp(2_900));
        assert_eq!(primary.missing(&[event("db-0")], &sight(1, "db-1")), Vec::<String>::new());
    }

    #[test]
    fn moves_that_are_too_many_or_without_a_failover_are_found() {
        let way = [("db-0", 0), ("db-1", 1_000), ("db-2", 1_500), ("db-1", 2_000)];
        assert_eq!(judged(&way, "db-0", &sight(3, "db-1")), "the primary moved 3 times instead of 2 at the most");
        let expected = "failovers that were done: 0, but moves of the primary: 1";
        assert_eq!(judged(&way[..2], "db-0", &sight(0, "db-1")), expected);
    }

    #[test]
    fn a_member_that_is_away_or_is_taken_for_another_is_found() {
        let way = [("db-1", 0)];
        assert_eq!(judged(&way, "db-0", &sight(0, "db-2")), "for db-2, db-1 is replica, not primary");
        let mut without = ClusterSnapshot::default();
        without.replicas.push(ReplicaSnapshot {
            name: "db-0".into(),
            answer: Some(ReplicaStatus { status: shown::Status::default(), events: Vec::new() }.into()),
        });
        let found = judged(&way, "db-0", &without);
        assert!(found.contains("for db-0, there is no database on db-0"), "{found}");
    }
}
