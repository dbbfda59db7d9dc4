//! The time for which an event kept a VM from running: the ticks that the replica on this VM missed.

use crate::model::command::{Command, RecordImpact};
use crate::model::event::{Ending, Event};
use crate::model::id::VmName;
use crate::model::lifecycle::Stage;
use crate::model::state::State;
use crate::model::time::Timestamp;
use alloc::vec::Vec;
use core::time::Duration;

/// A VM may be stopped this long before the documents show the event as started.
const SEEN_LATE: Duration = Duration::from_secs(5);

/// An observation of a replica is asked for until this long after the event was over.
const ASKED_FOR: Duration = Duration::from_hours(1);

/// The number of remembered gaps.
const GAPS: usize = 64;

/// The record of a replica's own running: the time since which a missed tick would be noticed, and the missed ticks.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DowntimeWatch {
    pub since: Timestamp,
    gaps: Vec<Gap>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Gap {
    ended: Timestamp,
    lasted: Duration,
}

impl DowntimeWatch {
    pub const fn since(since: Timestamp) -> Self {
        Self { since, gaps: Vec::new() }
    }

    /// The replica did not run for this long, until `ended`.
    pub fn missed(&mut self, lasted: Duration, ended: Timestamp) {
        self.gaps.push(Gap { ended, lasted });
        if self.gaps.len() > GAPS {
            self.gaps.remove(0);
        }
    }

    /// The pending report to the cluster: of one event, once.
    pub fn due(&self, state: &State, me: &VmName) -> Option<Command> {
        let is_recent = |event: &&Event| state.now.since(event.over_at().unwrap_or(state.now)) < ASKED_FOR;
        let closed = state.closed_events().rev().take_while(is_recent);
        state.open_events().chain(closed).filter(|event| is_owed(event, me)).find_map(|event| {
            let (from, to) = (impact_from(event)?, event.over_at()?);
            let during = self.gaps.iter().filter(|gap| gap.ended >= from && gap.ended.minus(gap.lasted) <= to);
            let lasted = during.map(|gap| gap.lasted).max().unwrap_or_default();
            let event = event.announcement.id.clone();
            (self.since <= from).then_some(Command::RecordImpact(RecordImpact { event, lasted }))
        })
    }
}

/// An open event may stop this VM at any time.
pub fn is_expected(state: &State, me: &VmName) -> bool {
    state.open_events().any(|event| event.affects(me) && !event.is_drill() && event.over_at().is_none())
}

fn is_owed(event: &Event, me: &VmName) -> bool {
    let has_happened = event.ending == Some(Ending::Completed) && !event.is_drill();
    has_happened && event.affects(me) && !event.impacts.contains_key(me)
}

/// The time of the decision to approve the event, or shortly before the event was seen as started.
fn impact_from(event: &Event) -> Option<Timestamp> {
    let started = event.entered_at(Stage::Started).or(event.over_at())?.minus(SEEN_LATE);
    let claimed = event.entered_at(Stage::Claimed).or(event.isolated_approvals.first().map(|takeover| takeover.at));
    Some(claimed.unwrap_or(started))
}

#[cfg(test)]
mod tests {
    use alloc::sync::Arc;

    use super::*;
    use crate::model::document::{Announcement, EventType, NotBefore, Source, Status};
    use crate::model::id::EventId;

    /// Claimed after ten seconds, started after twelve, and over after twenty.
    fn past() -> State {
        let announcement = Announcement {
            id: EventId::new("e1"),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::User,
            resource_type: alloc::string::String::new(),
            resources: alloc::vec![VmName::new("a")],
            not_before: NotBefore::Unknown,
            description: alloc::string::String::new(),
            duration: None,
        };
        let mut event = Event::first_seen_as(announcement, VmName::new("b"), Timestamp(0));
        let stages = [(Stage::Claimed, 10), (Stage::Started, 12), (Stage::Closed, 20)];
        event.entered.extend(stages.map(|(stage, seconds)| (stage, Timestamp(seconds * 1_000))));
        event.ending = Some(Ending::Completed);
        let mut state = State { now: Timestamp(21_000), ..State::default() };
        state.history.push_back(event.into());
        state
    }

    fn told(watch: &DowntimeWatch, state: &State, me: &str) -> Option<u64> {
        match watch.due(state, &VmName::new(me))? {
            Command::RecordImpact(RecordImpact { lasted, .. }) => u64::try_from(lasted.as_millis()).ok(),
            _ => None,
        }
    }

    #[test]
    fn the_longest_gap_between_claim_and_end_counts() {
        let mut watch = DowntimeWatch::since(Timestamp(0));
        assert_eq!(told(&watch, &past(), "a"), Some(0), "it watched all the time");
        for (lasted, ended) in [(9_000, 9_500), (1_000, 11_000), (4_000, 17_000), (9_000, 30_000)] {
            watch.missed(Duration::from_millis(lasted), Timestamp(ended));
        }
        assert_eq!(told(&watch, &past(), "a"), Some(4_000));
        watch.missed(Duration::from_secs(40), Timestamp(50_000));
        assert_eq!(told(&watch, &past(), "a"), Some(40_000), "it was still away when the event was over");
    }

    #[test]
    fn who_did_not_watch_from_the_claim_on_cannot_tell() {
        assert_eq!(told(&DowntimeWatch::since(Timestamp(10_001)), &past(), "a"), None);
        assert_eq!(told(&DowntimeWatch::since(Timestamp(10_000)), &past(), "a"), Some(0));
    }

    #[test]
    fn it_is_told_once_by_the_vms_that_it_names() {
        let watch = DowntimeWatch::since(Timestamp(0));
        let mut state = past();
        assert_eq!(told(&watch, &state, "b"), None);
        for event in &mut state.history {
            Arc::make_mut(event).impacts.insert(VmName::new("a"), Duration::ZERO);
        }
        assert_eq!(told(&watch, &state, "a"), None);
    }
}
