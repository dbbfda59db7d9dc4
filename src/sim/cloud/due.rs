//! The next automatic step, and its time. Only computes; `Cloud::advance` executes the step.

use std::time::Duration;

use allclear_core::model::document::EventType;
use allclear_core::model::id::EventId;
use allclear_core::model::time::Timestamp;

use super::approval::Approver;
use super::event::{EventEnd, PlatformEvent, PlatformStartCause};
use super::orders::Amendment;
use super::plan::{EventPlan, When};

/// An event that has not been announced yet.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) struct PendingEvent {
    pub(super) id: EventId,
    pub(super) when: When,
    pub(super) plan: EventPlan,
}

/// Names an entry of `pending` or `events` by its position.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum DueStep {
    Announce(usize),
    Change(usize, PlatformChange),
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum PlatformChange {
    Move { not_before: Timestamp, planned: bool },
    Amend(Amendment),
    Accept(Approver),
    Start(PlatformStartCause),
    End(EventEnd),
}

/// The earliest step; among simultaneous steps the first announced event's, and announcements last.
pub(super) fn next(events: &[PlatformEvent], pending: &[PendingEvent]) -> Option<(Timestamp, DueStep)> {
    let changes = events.iter().enumerate().filter_map(|(ordinal, event)| {
        of_event(event, events).map(|(at, change)| (at, DueStep::Change(ordinal, change)))
    });
    let announcements = pending
        .iter()
        .enumerate()
        .filter_map(|(ordinal, pending)| announced_at(pending, events).map(|at| (at, DueStep::Announce(ordinal))));
    changes.chain(announcements).min_by_key(|(at, _)| *at)
}

fn announced_at(pending: &PendingEvent, events: &[PlatformEvent]) -> Option<Timestamp> {
    match &pending.when {
        When::At(at) => Some(*at),
        When::After { event, pause } => {
            let (ended, _) = events.iter().find(|candidate| candidate.id == *event)?.ended?;
            Some(ended.plus(*pause))
        }
    }
}

fn of_event(event: &PlatformEvent, events: &[PlatformEvent]) -> Option<(Timestamp, PlatformChange)> {
    if event.ended.is_some() {
        return None;
    }
    if let Some((start, _)) = event.started {
        return Some((start.plus(event.plan.time_in_started()), PlatformChange::End(EventEnd::Finished)));
    }
    let after = |span: Duration| event.announced_at.plus(span);
    let plan = &event.plan;
    // Among simultaneous changes the first counts: the end of the event comes before its start.
    [
        plan.cancel_after.map(|span| (after(span), PlatformChange::End(EventEnd::Cancelled))),
        plan.moves.get(event.moved).map(|step| {
            let at = after(step.after);
            (at, PlatformChange::Move { not_before: at.plus(step.notice), planned: true })
        }),
        plan.approved_after
            .filter(|_| event.accepted.is_none())
            .map(|span| (after(span), PlatformChange::Accept(Approver::Other("policy".into())))),
        plan.strikes_after.map(|span| (after(span), PlatformChange::Start(PlatformStartCause::Failure))),
        approved_start(event, events).map(|at| (at, PlatformChange::Start(PlatformStartCause::Approved))),
        Some((event.not_before.plus(plan.late), PlatformChange::Start(PlatformStartCause::NotBefore))),
    ]
    .into_iter()
    .flatten()
    .min_by_key(|(at, _)| *at)
}

/// The start time after an approval: the delay, the host's other tenants, and for a Terminate also every other pending
/// Terminate must be through. No wait goes beyond NotBefore, when the tenants have timed out.
fn approved_start(event: &PlatformEvent, events: &[PlatformEvent]) -> Option<Timestamp> {
    let (accepted, _) = event.accepted.as_ref()?;
    let own = accepted.plus(event.plan.start_delay).plus(event.plan.other_tenants);
    if event.plan.kind != EventType::Terminate {
        return Some(own);
    }
    let others = events
        .iter()
        .filter(|other| other.id != event.id && other.plan.kind == EventType::Terminate && other.is_scheduled())
        .map(|other| other.accepted.as_ref().map_or(other.not_before, |(at, _)| (*at).min(other.not_before)));
    Some(others.fold(own, Timestamp::max))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cloud, HistoryEntry, PlatformBehaviour, PlatformOccurrence, Relapse, ScheduleMove, Vm};
    use allclear_core::model::document::Source;
    use allclear_core::model::id::VmName;

    const BEGIN: Timestamp = Timestamp(1_000_000);

    fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn cloud() -> Cloud {
        Cloud::new([Vm { name: VmName::new("a"), zone: None }], PlatformBehaviour::default(), 1, BEGIN)
    }

    fn plan(kind: EventType) -> EventPlan {
        EventPlan::new(kind, Source::Platform, vec![VmName::new("a")])
    }

    /// Seconds after the beginning at which an event started and ended.
    fn lived(cloud: &Cloud, id: &EventId) -> (Option<u64>, Option<u64>) {
        let event = cloud.event(id).unwrap();
        let after = |at: Timestamp| at.since(BEGIN).as_secs();
        (event.started.map(|(at, _)| after(at)), event.ended.map(|(at, _)| after(at)))
    }

    fn approve(cloud: &mut Cloud, after: u64, id: &EventId) {
        cloud.approve(BEGIN.plus(secs(after)), Approver::Other("somebody".into()), id);
    }

    fn play(cloud: &mut Cloud) {
        cloud.advance(BEGIN.plus(secs(1_000_000)));
    }

    #[test]
    fn without_an_approval_it_starts_at_not_before_or_later() {
        let mut cloud = cloud();
        let id = cloud.announce(BEGIN, EventPlan { late: secs(40), ..plan(EventType::Reboot) }).unwrap();
        play(&mut cloud);
        assert_eq!(lived(&cloud, &id), (Some(940), Some(950)));
    }

    #[test]
    fn an_approval_starts_it_when_the_other_tenants_agree_or_time_out() {
        let mut cloud = cloud();
        let quick = cloud.announce(BEGIN, EventPlan { other_tenants: secs(60), ..plan(EventType::Freeze) }).unwrap();
        let never = cloud.announce(BEGIN, EventPlan { other_tenants: secs(5_000), ..plan(EventType::Freeze) }).unwrap();
        for id in [&quick, &never] {
            approve(&mut cloud, 100, id);
        }
        play(&mut cloud);
        assert_eq!(lived(&cloud, &quick), (Some(161), Some(171)));
        assert_eq!(lived(&cloud, &never), (Some(900), Some(910)));
    }

    #[test]
    fn a_terminate_waits_for_the_other_terminates() {
        let mut cloud = cloud();
        let first = cloud.announce(BEGIN, plan(EventType::Terminate)).unwrap();
        let second = cloud.announce(BEGIN, EventPlan { notice: secs(200), ..plan(EventType::Terminate) }).unwrap();
        approve(&mut cloud, 10, &first);
        let mut both = cloud.clone();
        play(&mut cloud);
        assert_eq!(lived(&cloud, &first).0, Some(200), "the other timed out");
        approve(&mut both, 20, &second);
        play(&mut both);
        assert_eq!(lived(&both, &first).0, Some(20), "the other was approved");
    }

    #[test]
    fn what_held_a_terminate_back_is_cancelled_and_it_starts_then_not_earlier() {
        let mut cloud = cloud();
        let first = cloud.announce(BEGIN, plan(EventType::Terminate)).unwrap();
        let second = cloud.announce(BEGIN, plan(EventType::Terminate)).unwrap();
        approve(&mut cloud, 10, &first);
        cloud.cancel(BEGIN.plus(secs(100)), &second).unwrap();
        assert_eq!(lived(&cloud, &first).0, Some(100));
        let times: Vec<Timestamp> = cloud.history().iter().map(|happening| happening.at).collect();
        assert!(times.is_sorted(), "{times:?}");
    }

    #[test]
    fn not_before_moves_and_hardware_strikes_earlier() {
        let mut cloud = cloud();
        let moves = vec![
            ScheduleMove { after: secs(50), notice: secs(100) },
            ScheduleMove { after: secs(60), notice: secs(300) },
        ];
        let shifted = cloud.announce(BEGIN, EventPlan { moves, ..plan(EventType::Reboot) }).unwrap();
        let struck =
            cloud.announce(BEGIN, EventPlan { strikes_after: Some(secs(70)), ..plan(EventType::Reboot) }).unwrap();
        play(&mut cloud);
        assert_eq!(lived(&cloud, &shifted).0, Some(360));
        assert_eq!(lived(&cloud, &struck).0, Some(70));
        assert_eq!(cloud.event(&struck).unwrap().started.unwrap().1, PlatformStartCause::Failure);
    }

    #[test]
    fn an_event_is_over_only_after_its_last_relapse() {
        let mut cloud = cloud();
        let relapses = vec![Relapse { after: secs(60), lasts: secs(10) }];
        let id = cloud.announce(BEGIN, EventPlan { relapses, notice: secs(0), ..plan(EventType::Reboot) }).unwrap();
        let impacted: Vec<bool> = [0, 4, 5, 59, 60, 69, 70]
            .map(|after| {
                cloud.advance(BEGIN.plus(secs(after)));
                cloud.is_impacted(&VmName::new("a"))
            })
            .into();
        assert_eq!(impacted, [true, true, false, false, true, true, false]);
        play(&mut cloud);
        assert_eq!(lived(&cloud, &id), (Some(0), Some(75)));
    }

    #[test]
    fn many_small_steps_and_one_large_step_tell_the_same_history() {
        let tell = |step: u64| -> Vec<HistoryEntry> {
            let mut cloud = cloud();
            let first = cloud.announce(BEGIN, plan(EventType::Freeze)).unwrap();
            let after = When::After { event: first, pause: secs(7) };
            cloud
                .schedule(BEGIN, after, EventPlan { approved_after: Some(secs(9)), ..plan(EventType::Redeploy) })
                .unwrap();
            for tick in 0..=2_000 / step {
                cloud.advance(BEGIN.plus(secs(tick * step)));
            }
            cloud.history().to_vec()
        };
        let whole = tell(2_000);
        assert_eq!(tell(1), whole);
        assert!(matches!(whole.last(), Some(HistoryEntry { what: PlatformOccurrence::Ended(EventEnd::Finished), .. })));
    }
}
