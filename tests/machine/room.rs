//! Limits in bytes which the state never exceeds.

use allclear::core::apply::apply;
use allclear::core::apply::report::beyond_the_limit;
use allclear::core::model::bytes::{ANNOUNCEMENT_BYTES, DOCUMENT_BYTES, HISTORY_BYTES, WISHES_BYTES};
use allclear::core::model::command::{
    ApplyResult, Command, Entry, RegisterWorkloads, Rejection, ReportDocument, RequestAction,
};
use allclear::core::model::document::{Announcement, Document};
use allclear::core::model::event::Event;
use allclear::core::model::id::VmName;
use allclear::core::model::operator::{OPERATOR_RECORD_LIMIT, OperatorRequest};
use allclear::core::model::state::{OPEN_LIMIT_OF_OTHERS, State};
use allclear::core::model::time::Timestamp;

use super::bounds::{announcement, ask, commit, report};

/// An announcement for `vms` VMs outside this cluster.
fn of_others(number: usize, vms: usize) -> Announcement {
    let resources = (0..vms).map(|vm| VmName::new(&format!("other-{number}-{vm}"))).collect();
    Announcement { resources, ..announcement(number) }
}

fn report_by(state: &mut State, by: &str, events: Vec<Announcement>) -> ApplyResult {
    let by = VmName::new(by);
    let after = state.replicas[&by].reports;
    apply(
        state,
        &Entry {
            at: Timestamp(0),
            by,
            command: Command::ReportDocument(ReportDocument { after, document: Document::new(events) }),
        },
    )
}

fn with_replicas(names: &[&str]) -> State {
    let mut state = State::default();
    for name in names {
        let command = Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() });
        assert_eq!(
            apply(&mut state, &Entry { at: Timestamp(0), by: VmName::new(name), command }),
            ApplyResult::Applied
        );
    }
    state
}

#[test]
fn the_history_is_bounded_in_bytes_and_what_concerned_nobody_of_us_goes_first() {
    let mut state = with_replicas(&["a"]);
    report(&mut state, 0..1);
    for round in 0..100 {
        let large: Vec<_> = (1..=8).map(|number| of_others(round * 8 + number, 500)).collect();
        assert_eq!(report_by(&mut state, "a", large), ApplyResult::Applied);
    }
    report(&mut state, 0..0);
    let bytes: usize = state.closed_events().map(Event::bytes).sum();
    assert!(bytes <= HISTORY_BYTES && bytes > HISTORY_BYTES / 2, "{bytes} bytes");
    assert!(state.event(&announcement(0).id).is_some(), "it was of our VM, and is the oldest");
    assert!(state.event(&announcement(1).id).is_none() && state.event(&announcement(800).id).is_some());
}

#[test]
fn events_of_others_leave_places_for_those_of_ours() {
    let mut state = with_replicas(&["a", "b"]);
    assert_eq!(report_by(&mut state, "a", (0..400).map(|number| of_others(number, 1)).collect()), ApplyResult::Applied);
    assert_eq!(state.open.len(), OPEN_LIMIT_OF_OTHERS);
    assert_eq!(beyond_the_limit(&state).len(), 400 - OPEN_LIMIT_OF_OTHERS);
    assert_eq!(report_by(&mut state, "b", (500..520).map(announcement).collect()), ApplyResult::Applied);
    assert!((500..520).all(|number| state.open.contains_key(&announcement(number).id)));
    assert_eq!(state.open.len(), OPEN_LIMIT_OF_OTHERS + 20);
    // The joining replica becomes a member, with the event for which there was no room.
    let waiting = beyond_the_limit(&state).iter().map(|id| (*id).clone()).next().unwrap();
    let number: usize = waiting.as_str()[1..].parse().unwrap();
    let command = Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() });
    let joins = Entry { at: Timestamp(0), by: of_others(number, 1).resources[0].clone(), command };
    assert_eq!(apply(&mut state, &joins), ApplyResult::Applied);
    assert!(state.open.contains_key(&waiting));
}

#[test]
fn views_that_are_too_large_together_keep_the_vms_of_ours() {
    let mut state = with_replicas(&["a", "b", "c"]);
    let ours = |number: usize, vm: &str| {
        let mut event = of_others(number, 900);
        event.resources.push(VmName::new(vm));
        Announcement { id: announcement(7).id, ..event }
    };
    for (number, name) in ["a", "b", "c"].into_iter().enumerate() {
        assert_eq!(report_by(&mut state, name, vec![ours(number, name)]), ApplyResult::Applied);
    }
    let event = &state.open[&announcement(7).id];
    assert!(event.announcement.bytes() <= ANNOUNCEMENT_BYTES, "{} bytes", event.announcement.bytes());
    assert!(["a", "b", "c"].into_iter().all(|name| event.affects(&VmName::new(name))));
    // A new replica on a VM for whose name there was no room.
    let left_out = ours(2, "c").resources.into_iter().rev().find(|vm| !event.affects(vm)).unwrap();
    let command = Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() });
    let joins = Entry { at: Timestamp(0), by: left_out.clone(), command };
    assert_eq!(apply(&mut state, &joins), ApplyResult::Applied);
    assert!(state.open[&announcement(7).id].affects(&left_out));
}

#[test]
fn a_report_beyond_its_room_is_taken_from_nobody() {
    let mut state = with_replicas(&["a"]);
    let of = |count: usize, vms| (0..count).map(|number| of_others(number, vms)).collect::<Vec<_>>();
    assert!(Document::new(of(20, 500)).bytes() > 2 * DOCUMENT_BYTES);
    assert_eq!(report_by(&mut state, "a", of(20, 500)), ApplyResult::Rejected(Rejection::TooManyEvents));
    let long = of_others(1_000_000_000_000, 1_000);
    assert!(long.bytes() > ANNOUNCEMENT_BYTES);
    assert_eq!(report_by(&mut state, "a", vec![long]), ApplyResult::Rejected(Rejection::TooManyEvents));
    assert!(state.open.is_empty() && state.replicas[&VmName::new("a")].reports == 0);
    assert_eq!(report_by(&mut state, "a", of(5, 500)), ApplyResult::Applied);
    // With many replicas, each replica has less room.
    let names: Vec<String> = (0..100).map(|number| format!("r{number}")).collect();
    let state = with_replicas(&names.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(state.room_for_document() < DOCUMENT_BYTES && state.room_for_document() > 100 * 1_024);
}

#[test]
fn long_wishes_are_bounded_in_bytes_and_whatever_is_in_force_is_kept() {
    let mut state = with_replicas(&["a"]);
    ask(&mut state, OperatorRequest::Pause { until: Timestamp(1) });
    for _ in 0..OPERATOR_RECORD_LIMIT {
        let long = Command::RequestAction(RequestAction {
            what: OperatorRequest::ClusterChange { what: "x".repeat(1_000) },
            who: "y".into(),
            reason: "z".repeat(1_000),
        });
        commit(&mut state, long);
    }
    let bytes = state.operator_records.iter().map(|wish| wish.who.len() + wish.reason.len()).sum::<usize>();
    assert!(bytes < WISHES_BYTES && state.operator_records.len() > 5, "{} wishes", state.operator_records.len());
    assert_eq!(state.pause(Timestamp(0)).map(|pause| pause.number), Some(1));
}
