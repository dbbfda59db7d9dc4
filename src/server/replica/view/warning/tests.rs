//! The texts of warnings, and when a warning is given.

use super::*;
use crate::imds::read_document;
use allclear_core::apply::apply;
use allclear_core::model::command::{
    ChooseTreatment, Command, Entry, RecordReachability, RegisterWorkloads, ReportDocument,
};
use allclear_core::model::id::{EventId, GroupName, VmName, WorkloadName};
use allclear_core::model::workload::{OnAbsent, Origin, Workload};
use allclear_core::policy;
use allclear_core::policy::Policy;

#[test]
fn events_for_which_there_is_no_room_are_told_with_what_becomes_of_them() {
    let listing = |count: usize| {
        let rest = r#""EventType":"Freeze","EventStatus":"Scheduled","ResourceType":"VirtualMachine","Resources":["a"],"NotBefore":"""#;
        let events: Vec<_> = (0..count).map(|each| format!(r#"{{"EventId":"{each:04}",{rest}}}"#)).collect();
        let body = format!(r#"{{"DocumentIncarnation":1,"Events":[{}]}}"#, events.join(","));
        read_document(200, body.as_bytes()).unwrap()
    };
    let mut state = State::default();
    let mut commit = |command| {
        apply(&mut state, &Entry { at: Timestamp(7), by: VmName::new("a"), command });
        events_beyond(&state)
    };
    assert_eq!(
        commit(Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() })),
        None
    );
    assert_eq!(commit(Command::ReportDocument(ReportDocument { after: 0, document: listing(OPEN_LIMIT) })), None);
    let told = commit(Command::ReportDocument(ReportDocument { after: 1, document: listing(OPEN_LIMIT + 2) })).unwrap();
    assert!(told.text.starts_with("2 announced events, 0256 among them, are above the limit of 256 "), "{}", told.text);
    assert_eq!(told.since, rfc3339(Timestamp(7)));
    assert_eq!(commit(Command::ReportDocument(ReportDocument { after: 2, document: listing(OPEN_LIMIT) })), None);
}

#[test]
fn a_notice_that_had_ended_before_the_event_was_seen_is_told() {
    let mut state = State::default();
    let mut commit = |at: i64, command| {
        apply(&mut state, &Entry { at: Timestamp(at), by: VmName::new("a"), command });
        implausible_notices(&state).map(|warning| warning.text).collect::<Vec<_>>()
    };
    let listing = |minute: u32| {
        let event = format!(
            r#"{{"EventId":"e","EventType":"Reboot","EventStatus":"Scheduled","ResourceType":"VirtualMachine",
            "Resources":["a"],"NotBefore":"Thu, 01 Jan 1970 00:{minute}:00 GMT"}}"#
        );
        read_document(200, format!(r#"{{"DocumentIncarnation":1,"Events":[{event}]}}"#).as_bytes()).unwrap()
    };
    commit(0, Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }));
    let told = commit(20 * 60_000, Command::ReportDocument(ReportDocument { after: 0, document: listing(15) }));
    let expected = "event e was first seen at 1970-01-01T00:20:00.000Z, and its notice had ended at \
                    1970-01-01T00:15:00.000Z: ";
    assert!(told.len() == 1 && told[0].starts_with(expected), "{told:?}");
    assert_eq!(
        commit(21 * 60_000, Command::ReportDocument(ReportDocument { after: 1, document: listing(35) })),
        [""; 0]
    );
}

fn commit(state: &mut State, by: &str, command: Command) {
    apply(state, &Entry { at: Timestamp(0), by: VmName::new(by), command });
}

/// The VMs `a` and `b` with one group.
fn of_two_members() -> State {
    let mut state = State::default();
    let workload = || Workload {
        name: WorkloadName("pg".into()),
        group: Some(GroupName("orders".into())),
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    for vm in ["a", "b"] {
        let registered = RegisterWorkloads { workloads: vec![workload()], groups: Vec::new() };
        commit(&mut state, vm, Command::RegisterWorkloads(registered));
    }
    state
}

#[test]
fn a_group_with_a_single_member_is_told_once_every_replica_is_known() {
    let mut state = of_two_members();
    let (both, three) = (["a", "b"].map(VmName::new), ["a", "b", "c"].map(VmName::new));
    assert_eq!(single_members(&state, &both), [""; 0]);
    let misspelt = Workload {
        name: WorkloadName("pg".into()),
        group: Some(GroupName("order".into())),
        after: Vec::new(),
        hooks: Vec::new(),
        origin: Origin::Configured,
        on_absent: OnAbsent::Hold,
    };
    assert_eq!(single_members(&state, &three), [""; 0], "c has yet to register");
    let registered = RegisterWorkloads { workloads: vec![misspelt], groups: Vec::new() };
    commit(&mut state, "c", Command::RegisterWorkloads(registered));
    let [text] = &single_members(&state, &three)[..] else { panic!("one warning") };
    let expected = "group order has a single member, pg on c: no other member can take over";
    assert!(text.starts_with(expected) && text.contains("(other groups: orders)"), "{text}");
    assert_eq!(single_members(&state, &three[2..]), [""; 0], "a cluster of one");
}

#[test]
fn members_that_one_event_of_the_platform_takes_are_on_one_host() {
    let told = |source: &str, vms: &str| {
        let mut state = of_two_members();
        let body = format!(
            r#"{{"DocumentIncarnation":1,"Events":[{{"EventId":"e","EventType":"Reboot","EventStatus":"Scheduled",
            "ResourceType":"VirtualMachine","Resources":[{vms}],"EventSource":"{source}","NotBefore":""}}]}}"#
        );
        let document = read_document(200, body.as_bytes()).unwrap();
        commit(&mut state, "b", Command::ReportDocument(ReportDocument { after: 0, document }));
        shared_hosts(&state).map(|warning| warning.text).collect::<Vec<_>>()
    };
    let [text] = &told("Platform", r#""a","b""#)[..] else { panic!("one warning") };
    assert!(text.starts_with("a and b of group orders are on the same host"), "{text}");
    assert_eq!(told("Platform", r#""a""#), [""; 0]);
    // A user may reboot VMs of several hosts at once.
    assert_eq!(told("User", r#""a","b""#), [""; 0]);
}

#[test]
fn that_the_platform_takes_a_member_beside_one_that_is_out_is_told_ahead() {
    let mut state = of_two_members();
    commit(
        &mut state,
        "b",
        Command::RecordReachability(RecordReachability { replica: VmName::new("a"), reachable: false }),
    );
    let body = r#"{"DocumentIncarnation":1,"Events":[{"EventId":"e","EventType":"Reboot","EventStatus":"Scheduled",
        "ResourceType":"VirtualMachine","Resources":["b"],"NotBefore":"Thu, 01 Jan 1970 00:15:00 GMT"}]}"#;
    let document = read_document(200, body.as_bytes()).unwrap();
    commit(&mut state, "b", Command::ReportDocument(ReportDocument { after: 0, document }));
    let announcement = &state.open_event(&EventId::new("e")).unwrap().announcement;
    let treatment = policy::treatment_of(&Policy::default(), announcement, &[VmName::new("b")], Timestamp(0));
    commit(&mut state, "b", Command::ChooseTreatment(ChooseTreatment { event: EventId::new("e"), treatment }));
    let told = |minute: i64| overdrafts(&state, Timestamp(minute * 60_000)).next();
    assert_eq!(told(12), None);
    let text = told(13).unwrap().text;
    assert!(
        text.starts_with("at 1970-01-01T00:15:00.000Z Azure starts the event of b although pg on a is out"),
        "{text}"
    );
}
