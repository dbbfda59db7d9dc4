//! The replica to which leadership is transferred, and the first entry of a leadership. Leadership leaves a VM that an
//! event is about to take down, and a replica with a stalled metadata channel (`SPEC.md` 6.10). The target is a hint; Raft
//! decides.

use crate::model::event::Event;
use crate::model::id::VmName;
use crate::model::isolation::ImdsHealth;
use crate::model::state::State;
use crate::model::time::Timestamp;
use crate::model::treatment::Action;
use crate::planning_input::PlanningInput;
use core::time::Duration;

/// A leader with a channel stalled for this long yields to a replica with a healthy channel.
const STALLED_FOR: Duration = Duration::from_secs(15);

/// A time without an entry that is longer may be a time without a leader.
const SILENCE: Duration = Duration::from_secs(5);

/// The replica that receives leadership; `None` while `me` may continue, or without a better replica.
pub fn transfer_target(state: &State, input: &PlanningInput) -> Option<VmName> {
    // The cheap check comes first: the search for a target examines every open event.
    if !is_threatened(state, &input.me, input.now) && !is_channel_stalled(input) {
        return None;
    }
    let fit = |name: &&VmName| {
        **name != input.me
            && !input.learners.contains(name)
            && input.peers.get(name).is_some_and(|contact| contact.reachable && contact.imds == ImdsHealth::Healthy)
            && !state.open_events().any(|event| is_to_come(event) && event.affects(name))
    };
    input.members.iter().find(fit).cloned()
}

/// The replica that leads after this leader's deliberate stop: a voter that answers. `None` without such a replica.
pub fn successor(input: &PlanningInput) -> Option<&VmName> {
    let fit = |name: &&VmName| **name != input.me && input.reaches(name) && !input.learners.contains(name);
    input.members.iter().find(fit)
}

/// Whether a leader of this term and quorum epoch (`None` without a quorum) adds a command to the log now. After a silence
/// the first entry of a leadership begins it: another entry before would hide for how long no leader decided
/// (`SPEC.md` 7.6).
pub fn may_enter(
    state: &State,
    leads: Option<(u64, u64)>,
    now: Timestamp,
    is_beginning: impl FnOnce() -> bool,
) -> bool {
    let has_begun = || state.leadership.as_ref().is_some_and(|known| leads == Some((known.term, known.turn)));
    now.since(state.now) < SILENCE || has_begun() || is_beginning()
}

/// An event in preparation names this VM. A distant event, or an event left to others, does not count yet.
fn is_threatened(state: &State, vm: &VmName, now: Timestamp) -> bool {
    let is_near = |event: &Event| {
        let treatment = event.treatment.as_ref();
        treatment.is_some_and(|treatment| treatment.action != Action::Observe) && now >= event.preparation_starts()
    };
    state.open_events().any(|event| is_near(event) && is_to_come(event) && event.affects(vm))
}

/// A drill takes no VM down.
fn is_to_come(event: &Event) -> bool {
    !event.stage().is_over() && !event.is_drill()
}

fn is_channel_stalled(input: &PlanningInput) -> bool {
    input.peers.get(&input.me).is_some_and(|contact| {
        contact.imds == ImdsHealth::Stalled && input.now.since(contact.imds_since) >= STALLED_FOR
    })
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::string::String;
    use alloc::vec::Vec;

    use super::*;
    use crate::apply::apply;
    use crate::model::command::{ChooseTreatment, Command, Entry, RegisterWorkloads, ReportDocument};
    use crate::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
    use crate::model::id::EventId;
    use crate::planning_input::PeerHealth;
    use crate::policy::{Policy, treatment_of};

    const NOW: Timestamp = Timestamp(1_000_000);

    fn input(channels: [ImdsHealth; 3]) -> PlanningInput {
        let members: Vec<VmName> = ["a", "b", "c"].map(VmName::new).into();
        let contact = |channel| PeerHealth {
            reachable: true,
            since: Timestamp(0),
            imds: channel,
            imds_since: NOW.minus(STALLED_FOR),
            document_age: None,
            answers_in: Duration::ZERO,
            operator_seq: 0,
            can_acknowledge: false,
        };
        let contacts = members.iter().cloned().zip(channels.map(contact)).collect();
        PlanningInput { peers: contacts, ..PlanningInput::of_members(&members, NOW) }
    }

    /// A cluster in which an event for these VMs was seen and treated.
    fn with_event(vms: &[&str], not_before: Timestamp) -> State {
        let announcement = Announcement {
            id: EventId::new("e"),
            status: Status::Scheduled,
            kind: EventType::Reboot,
            source: Source::Platform,
            resource_type: String::new(),
            resources: vms.iter().map(|vm| VmName::new(vm)).collect(),
            not_before: NotBefore::At(not_before),
            description: String::new(),
            duration: None,
        };
        let mut state = State::default();
        let members = ["a", "b", "c"].map(VmName::new);
        let treatment = treatment_of(&Policy::default(), &announcement, &members, NOW);
        for command in [
            Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() }),
            Command::ReportDocument(ReportDocument { after: 0, document: Document::new(alloc::vec![announcement]) }),
            Command::ChooseTreatment(ChooseTreatment { event: EventId::new("e"), treatment }),
        ] {
            apply(&mut state, &Entry { at: NOW, by: VmName::new("a"), command });
        }
        state
    }

    const HEALTHY: [ImdsHealth; 3] = [ImdsHealth::Healthy; 3];

    #[test]
    fn a_leader_that_is_not_threatened_stays() {
        assert_eq!(transfer_target(&State::default(), &input(HEALTHY)), None);
        assert_eq!(transfer_target(&with_event(&["b"], NOW), &input(HEALTHY)), None);
    }

    #[test]
    fn a_threatened_leader_gives_way_to_one_that_is_not() {
        assert_eq!(transfer_target(&with_event(&["a"], NOW), &input(HEALTHY)), Some(VmName::new("b")));
        assert_eq!(transfer_target(&with_event(&["a", "b"], NOW), &input(HEALTHY)), Some(VmName::new("c")));
        assert_eq!(transfer_target(&with_event(&["a", "b", "c"], NOW), &input(HEALTHY)), None);
    }

    #[test]
    fn a_learner_is_no_heir() {
        let mut with_learner = input(HEALTHY);
        with_learner.learners = BTreeSet::from([VmName::new("b")]);
        assert_eq!(transfer_target(&with_event(&["a"], NOW), &with_learner), Some(VmName::new("c")));
    }

    #[test]
    fn a_leader_that_stops_is_succeeded_by_a_voter_that_answers() {
        let mut input = input(HEALTHY);
        assert_eq!(successor(&input), Some(&VmName::new("b")));
        input.learners = BTreeSet::from([VmName::new("b")]);
        assert_eq!(successor(&input), Some(&VmName::new("c")));
        input.peers.get_mut(&VmName::new("c")).unwrap().reachable = false;
        assert_eq!(successor(&input), None);
    }

    #[test]
    fn an_event_that_is_days_away_moves_nobody_yet() {
        let days = NOW.plus(Duration::from_hours(72));
        assert_eq!(transfer_target(&with_event(&["a"], days), &input(HEALTHY)), None);
    }

    #[test]
    fn a_blind_leader_gives_way_to_one_that_sees() {
        let blind = [ImdsHealth::Stalled, ImdsHealth::Unknown, ImdsHealth::Healthy];
        assert_eq!(transfer_target(&State::default(), &input(blind)), Some(VmName::new("c")));
        let all_blind = [ImdsHealth::Stalled; 3];
        assert_eq!(transfer_target(&State::default(), &input(all_blind)), None);
        let mut just_now = input(blind);
        just_now.now = NOW.minus(Duration::from_millis(1));
        assert_eq!(transfer_target(&State::default(), &just_now), None);
    }
}
