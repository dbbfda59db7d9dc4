//! The treatment that is due for an event: at its first sight, and after a missed window.

use crate::model::event::Event;
use crate::model::treatment::Treatment;
use crate::planning_input::PlanningInput;
use crate::policy;

/// `None` while the present treatment stays, or no treatment is possible.
pub(super) fn treatment_to_choose(event: &Event, input: &PlanningInput) -> Option<Treatment> {
    let (announcement, now) = (&event.announcement, input.now);
    if let Some(treatment) = &event.treatment {
        let next = || policy::treatment_in_next_window(&input.policy, announcement, treatment, now);
        return event.has_missed_window(now).then(next);
    }
    // An event of unknown status is observed (D6).
    if !event.is_drill() && !announcement.status.is_known() {
        return None;
    }
    let chosen = policy::treatment_of(&input.policy, announcement, &input.members, now);
    // A drill starts at once.
    Some(if event.is_drill() { Treatment { ahead: None, opening: None, ..chosen } } else { chosen })
}
