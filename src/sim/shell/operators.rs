//! Somebody asks a replica for something, and is told whether it was taken over.

use allclear_core::schedule::needs;
use std::time::Duration;

use super::Here;
use crate::scenario::Wish;
use allclear_core::model::command::{Command, Verdict};
use allclear_core::model::event::Event;
use allclear_core::model::operator::Asked;

pub(crate) async fn ask(here: Here, wish: Wish) {
    let Some(what) = asked(&here, wish) else { return };
    let command = Command::Ask { what, who: "somebody".into(), reason: "a reason".into() };
    for _ in 0..3 {
        if let Ok(verdict) = here.propose(&command).await {
            if verdict == Verdict::Applied {
                here.world.judge.borrow_mut().acknowledged += 1;
            }
            return;
        }
        here.sleep(Duration::from_millis(100)).await;
    }
}

fn asked(here: &Here, wish: Wish) -> Option<Asked> {
    let state = here.state();
    let event = |place: usize| -> Option<&Event> { state.open_events().nth(place % state.open.len().max(1)) };
    let id = |place: usize| event(place).map(|event| event.announcement.id.clone());
    Some(match wish {
        Wish::Hold(place, span) => Asked::Hold { event: id(place)?, until: here.time().plus(span), no_hooks: false },
        Wish::Release(place) => Asked::Release { event: id(place)? },
        Wish::Pause(span) => Asked::Pause { until: here.time().plus(span) },
        Wish::Resume => Asked::Resume,
        Wish::Approve(place) => {
            Asked::Approve { event: id(place)?, revision: event(place)?.revision, over_budget: false }
        }
        Wish::Skip(place) => {
            let event = event(place)?;
            let step = needs::preparing(&state, event).into_iter().next()?;
            Asked::Skip { event: event.announcement.id.clone(), member: step.member, hook: step.id }
        }
    })
}
