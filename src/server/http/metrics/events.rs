//! Gauges of open events: stage, blocker and waiting time; and operators' holds and pauses. An event's id is never a
//! label.

use std::collections::{BTreeMap, BTreeSet};

use super::exposition::{Exposition, number};
use crate::replica::metrics::seconds;
use allclear_core::explain::explain;
use allclear_core::isolation::unaware_replicas::unaware_replicas;
use allclear_core::model::blocker::Blocker;
use allclear_core::model::event::Event;
use allclear_core::model::lifecycle::Stage;
use allclear_core::model::state::State;
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::Phase;
use allclear_core::planning_input::PlanningInput;
use allclear_core::start_cause::StartCause;

/// The number of open events whose blocker is computed, the oldest first, which bounds the cost of a scrape.
const EXPLAINED: usize = 100;

pub(super) fn fill(exposition: &Exposition, state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let mut open: Vec<&Event> = state.open_events().filter(|event| !event.is_drill()).collect();
    open.sort_by_key(|event| event.first_seen());
    exposition.one("allclear_drills_open", "Open drills; no other metric counts drills as events.", {
        number(state.open.len() - open.len())
    })?;
    stages(exposition, &open)?;
    blockers(exposition, &open, state, input)?;
    hooks(exposition, &open, input.now)?;
    halts(exposition, &open, state, input)?;
    starts(exposition, &open, state)
}

fn stages(exposition: &Exposition, open: &[&Event]) -> prometheus::Result<()> {
    let of = |stage: Stage| number(open.iter().filter(|event| event.stage() == stage).count());
    let stages = Stage::ALL.into_iter().filter(|stage| *stage != Stage::Closed);
    let values = stages.map(|stage| (stage.as_str(), of(stage)));
    exposition.each("allclear_events_open", "Open events, by stage.", "stage", values)?;
    let undecided = open.iter().filter(|event| event.stage() < Stage::Approved && !event.is_left_to_others());
    let ends = undecided.map(|event| event.notice_ends()).min().map_or(0.0, seconds);
    exposition.one(
        "allclear_next_notice_end_timestamp_seconds",
        "The earliest end of the notice of an event that is not approved and not left to other approvers; Azure then \
         starts the event; 0 without such an event.",
        ends,
    )
}

fn blockers(exposition: &Exposition, open: &[&Event], state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let mut longest: BTreeMap<&str, f64> = Blocker::CODES.iter().map(|code| (*code, 0.0)).collect();
    let mut counts = longest.clone();
    for event in open.iter().take(EXPLAINED) {
        let mut codes = BTreeSet::new();
        for blocker in explain(state, event, input) {
            let waited = input.now.since(waiting_since(event, &blocker)).as_secs_f64();
            let known = longest.entry(blocker.code()).or_default();
            *known = known.max(waited);
            // Two hooks of one event are one blocked event.
            if codes.insert(blocker.code()) {
                *counts.entry(blocker.code()).or_default() += 1.0;
            }
        }
    }
    exposition.each(
        "allclear_event_blocked_seconds",
        "The longest wait of an event with this blocker: since its preparation could begin, since its announcement if \
         the event waits for no hook, or since its approval if the event is approved.",
        "blocker",
        longest,
    )?;
    exposition.each(
        "allclear_events_blocked",
        "Open events with this blocker; an event with several blockers counts for each.",
        "blocker",
        counts,
    )
}

/// Start of the wait; an event announced days ahead waits for its hooks since the earliest start of its preparation.
fn waiting_since(event: &Event, blocker: &Blocker) -> Timestamp {
    match blocker {
        Blocker::WaitingForPlatform { since } => *since,
        Blocker::TooEarly { .. } | Blocker::Observing | Blocker::Unregistered { .. } => event.first_seen(),
        _ => event.preparation_starts(),
    }
}

fn hooks(exposition: &Exposition, open: &[&Event], now: Timestamp) -> prometheus::Result<()> {
    let running = || {
        let attempts = open.iter().flat_map(|event| event.attempts.iter());
        attempts.filter(|attempt| attempt.outcome.is_none())
    };
    let of = |phase: Phase| number(running().filter(|attempt| attempt.hook.phase == phase).count());
    let values = Phase::ALL.map(|phase| (phase.as_str(), of(phase)));
    exposition.each("allclear_hooks_running", "Running attempts of hooks, on all VMs.", "phase", values)?;
    let expected = running().filter_map(|attempt| attempt.progress.as_ref()?.expected_end);
    let overdue = expected.map(|end| now.since(end)).max().unwrap_or_default();
    exposition.one(
        "allclear_hook_overdue_seconds",
        "The longest time of a running attempt past its expected end.",
        overdue.as_secs_f64(),
    )
}

fn halts(exposition: &Exposition, open: &[&Event], state: &State, input: &PlanningInput) -> prometheus::Result<()> {
    let pause = state.pause(input.now);
    let holds: Vec<_> = open.iter().filter_map(|event| event.hold(input.now)).collect();
    let ends = |until: Option<Timestamp>| until.map_or(0.0, seconds);
    exposition.whether("allclear_paused", "1 while an operator has paused all approvals.", pause.is_some())?;
    exposition.one(
        "allclear_pause_end_timestamp_seconds",
        "The end of the pause; 0 without a pause.",
        ends(pause.as_ref().map(|pause| pause.until)),
    )?;
    exposition.one("allclear_holds", "Events that operators hold.", number(holds.len()))?;
    exposition.one(
        "allclear_hold_end_timestamp_seconds",
        "The end of the last hold; 0 without a hold.",
        ends(holds.iter().map(|hold| hold.until).max()),
    )?;
    let unaware = |number| unaware_replicas(state, input, number).len();
    let most = pause.iter().chain(&holds).map(|halt| unaware(halt.number)).max().unwrap_or_default();
    exposition.one(
        "allclear_halts_unacknowledged",
        "Voters that have not acknowledged the pause or a hold, and could approve an event as an isolated replica.",
        number(most),
    )
}

fn starts(exposition: &Exposition, open: &[&Event], state: &State) -> prometheus::Result<()> {
    let closed = state.closed_events().filter(|event| !event.is_drill());
    exposition.each(
        "allclear_event_last_start_timestamp_seconds",
        "The last start of an event for this cause, among the kept events that policy does not leave to other approvers; \
         0 without such an event.",
        "cause",
        last_starts(closed.chain(open.iter().copied())),
    )
}

fn last_starts<'a>(events: impl Iterator<Item = &'a Event>) -> BTreeMap<&'static str, f64> {
    let mut last: BTreeMap<&str, f64> = StartCause::ALL.map(|cause| (cause.as_str(), 0.0)).into();
    // An operator may approve an event that policy leaves to others.
    let is_ours = |event: &&Event| !event.is_left_to_others() || event.start_cause() == Some(StartCause::Approved);
    for event in events.filter(is_ours) {
        let at = event.entered_at(Stage::Started).or_else(|| event.over_at());
        if let Some((cause, at)) = event.start_cause().zip(at) {
            let known = last.entry(cause.as_str()).or_default();
            *known = known.max(seconds(at));
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use allclear_core::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use allclear_core::model::id::{EventId, VmName};
    use allclear_core::policy::{Policy, treatment_of};

    #[test]
    fn the_start_of_an_event_that_policy_leaves_to_others_alarms_nobody() {
        let announcement = Announcement {
            id: EventId::new("e"),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::Platform,
            resource_type: String::new(),
            resources: vec![VmName::new("db-9")],
            not_before: NotBefore::At(Timestamp(900_000)),
            description: String::new(),
            duration: None,
        };
        let mut event = Event::first_seen_as(announcement, VmName::new("db-0"), Timestamp(1_000));
        event.entered.push((Stage::Started, Timestamp(2_000)));
        let mut last = |member: &str| {
            let members = [VmName::new(member)];
            event.treatment = Some(treatment_of(&Policy::default(), &event.announcement, &members, Timestamp(1_000)));
            last_starts(core::iter::once(&event)).values().sum::<f64>()
        };
        assert!(last("db-9") > 1.0, "an event of this cluster");
        assert!(last("db-0") < 1.0, "an event of another cluster");
    }
}
