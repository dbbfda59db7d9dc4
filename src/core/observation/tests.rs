//! Series of polls, and the reports after them.

mod reports;
mod room;

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::*;
use crate::apply::apply;
use crate::model::attempt::Attempt;
use crate::model::command::{Entry, MarkDocumentStale, RegisterWorkloads, ReportDocument};
use crate::model::document::tests::announced;
use crate::model::document::{NotBefore, Status};
use crate::model::event::Event;
use crate::model::hook_id::HookId;
use crate::model::id::{AttemptId, WorkloadName};
use crate::model::time::Timestamp;
use crate::model::workload::{Intent, Member, Phase};

fn listing(ids: &[&str]) -> Document {
    Document::new(ids.iter().map(|id| announced(id, Status::Scheduled)).collect())
}

fn with_reported(me: &VmName, reports: u64, ids: &[&str]) -> State {
    let mut state = State::default();
    let replica = Arc::make_mut(state.replicas.entry(me.clone()).or_default());
    (replica.reports, replica.document) = (reports, Some(listing(ids)));
    state
}

/// A poll at this second, with an api-version that can show everything.
fn poll(observation: &mut Observation, state: &State, second: i64, document: &Document) {
    observation.record_poll(
        Poll { document, time: PollTime::at_once(Timestamp(second * 1000)), patience: Patience::default() },
        state,
        |_| true,
    );
}

/// Any run of a hook.
fn attempt() -> Attempt {
    Attempt {
        id: AttemptId(1),
        member: Member { vm: VmName::new("a"), workload: WorkloadName("pg".into()) },
        hook: HookId { phase: Phase::Drain, key: 0 },
        intent: Intent::Run,
        stint: 1,
        on: VmName::new("a"),
        begun_at: Timestamp(0),
        deadline: Timestamp(60_000),
        progress: None,
        blocked: None,
        outcome: None,
        late: None,
    }
}

fn reported(observation: &Observation) -> Document {
    observation.document.clone().unwrap_or_default()
}

#[test]
fn an_event_is_gone_when_two_polls_in_a_row_do_not_list_it() {
    let (mut observation, state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1", "e2"]));
    poll(&mut observation, &state, 1, &listing(&["e2"]));
    assert_eq!(reported(&observation), listing(&["e1", "e2"]));
    let time = PollTime { asked: Timestamp(1_200), answered: Timestamp(5_000) };
    observation
        .record_poll(Poll { document: &listing(&["e2"]), time, patience: Patience::default() }, &state, |_| true);
    assert_eq!(reported(&observation), listing(&["e1", "e2"]), "they are not an interval apart");
    poll(&mut observation, &state, 2, &listing(&["e2"]));
    assert_eq!(reported(&observation), listing(&["e2"]));
}

#[test]
fn a_poll_that_brings_nothing_or_the_event_interrupts_the_row() {
    let (mut observation, state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    poll(&mut observation, &state, 1, &listing(&[]));
    observation.record_failed_poll();
    poll(&mut observation, &state, 2, &listing(&[]));
    assert_eq!(reported(&observation), listing(&["e1"]));
    poll(&mut observation, &state, 3, &listing(&["e1"]));
    poll(&mut observation, &state, 4, &listing(&[]));
    assert_eq!(reported(&observation), listing(&["e1"]));
}

#[test]
fn a_look_beside_the_polls_brings_news_and_ends_nothing() {
    let (mut observation, state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    poll(&mut observation, &state, 1, &listing(&[]));
    observation.looked(&listing(&["e2"]), &state);
    observation.looked(&listing(&["e2"]), &state);
    assert_eq!(reported(&observation), listing(&["e1", "e2"]));
    observation.looked(&listing(&["e1", "e2"]), &state);
    poll(&mut observation, &state, 2, &listing(&["e2"]));
    assert_eq!(reported(&observation), listing(&["e1", "e2"]), "it was listed meanwhile");
}

#[test]
fn what_may_be_about_to_start_or_has_started_is_gone_after_ten_seconds_and_five_polls() {
    let (mut observation, mut state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    let mut event = Event::first_seen_as(announced("e1", Status::Scheduled), VmName::new("a"), Timestamp(0));
    event.entered.push((Stage::Claimed, Timestamp(0)));
    state.open.insert(EventId::new("e1"), event.into());
    for second in 1..=10 {
        poll(&mut observation, &state, second, &listing(&[]));
    }
    assert_eq!(reported(&observation), listing(&["e1"]));
    poll(&mut observation, &state, 11, &listing(&[]));
    assert_eq!(reported(&observation), listing(&[]));

    let started = Document::new([announced("e2", Status::Started)].into());
    poll(&mut observation, &state, 20, &started);
    for second in [21, 25, 30, 35] {
        poll(&mut observation, &state, second, &listing(&[]));
    }
    assert_eq!(reported(&observation), started, "four polls");
    poll(&mut observation, &state, 36, &listing(&[]));
    assert_eq!(reported(&observation), listing(&[]));
}

#[test]
fn what_hooks_were_begun_for_is_missing_after_two_polls_and_gone_after_ten_seconds() {
    let (mut observation, mut state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    let mut event = Event::first_seen_as(announced("e1", Status::Scheduled), VmName::new("a"), Timestamp(0));
    event.attempts.push(attempt());
    state.open.insert(EventId::new("e1"), event.into());
    poll(&mut observation, &state, 1, &listing(&[]));
    assert_eq!(reported(&observation), listing(&["e1"]));
    let missing = Document::new([announced("e1", Status::Missing)].into());
    for second in 2..=10 {
        poll(&mut observation, &state, second, &listing(&[]));
        observation.looked(&listing(&[]), &state);
        assert_eq!(reported(&observation), missing, "after {second} s");
    }
    poll(&mut observation, &state, 11, &listing(&["e1"]));
    assert_eq!(reported(&observation), listing(&["e1"]), "it is back");
    for second in 12..=22 {
        poll(&mut observation, &state, second, &listing(&[]));
    }
    assert_eq!(reported(&observation), listing(&[]));
}

#[test]
fn that_an_event_has_started_is_taken_back_after_ten_seconds_and_five_polls() {
    let (mut observation, state) = (Observation::default(), State::default());
    let started = Document::new([announced("e1", Status::Started)].into());
    poll(&mut observation, &state, 0, &started);
    for second in 1..=8 {
        poll(&mut observation, &state, second, &listing(&["e1"]));
    }
    observation.looked(&started, &state);
    for second in 9..=18 {
        poll(&mut observation, &state, second, &listing(&["e1"]));
    }
    assert_eq!(reported(&observation), started);
    poll(&mut observation, &state, 19, &listing(&["e1"]));
    assert_eq!(reported(&observation), listing(&["e1"]));
}

#[test]
fn that_an_event_has_started_by_the_word_of_an_earlier_life_is_taken_up() {
    let (me, mut observation) = (VmName::new("a"), Observation::default());
    poll(&mut observation, &State::default(), 0, &listing(&["e1"]));
    let mut state = with_reported(&me, 1, &[]);
    let started = Document::new([announced("e1", Status::Started)].into());
    Arc::make_mut(state.replicas.get_mut(&me).unwrap()).document = Some(started.clone());
    observation.adopt_state(&state, &me);
    assert_eq!(reported(&observation), started);
}

#[test]
fn what_cannot_be_read_stays_what_it_was() {
    let (mut observation, state) = (Observation::default(), State::default());
    let of = |status: Status| Document::new([announced("e1", status)].into());
    let unreadable = Document::new([Announcement::unreadable(EventId::new("e1"), "it is odd")].into());
    poll(&mut observation, &state, 0, &of(Status::Scheduled));
    poll(&mut observation, &state, 1, &unreadable);
    assert_eq!(reported(&observation), of(Status::Unreadable));
    poll(&mut observation, &state, 2, &of(Status::Started));
    poll(&mut observation, &state, 3, &unreadable);
    assert_eq!(reported(&observation), of(Status::Started));
}

#[test]
fn behind_an_element_without_an_id_an_event_may_hide_for_a_minute() {
    let (mut observation, state) = (Observation::default(), State::default());
    let gap = Document { has_element_without_id: true, ..Document::default() };
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    for second in 1..=60 {
        poll(&mut observation, &state, second, &gap);
    }
    assert_eq!(reported(&observation), listing(&["e1"]));
    poll(&mut observation, &state, 61, &gap);
    assert_eq!(reported(&observation), listing(&[]));
}

#[test]
fn an_event_that_the_api_version_cannot_show_is_not_missed() {
    let (mut observation, state) = (Observation::default(), State::default());
    poll(&mut observation, &state, 0, &listing(&["e1"]));
    for second in 1..4 {
        let now = PollTime::at_once(Timestamp(second * 1000));
        observation.record_poll(
            Poll { document: &listing(&[]), time: now, patience: Patience::default() },
            &state,
            |kind| *kind != EventType::Reboot,
        );
    }
    assert_eq!(reported(&observation), listing(&["e1"]));
}
