//! An operator sends a request to a replica, and receives whether the request was accepted.

use allclear_core::schedule::{failure, required};
use std::time::Duration;

use super::ModelContext;
use crate::scenario::ScenarioRequest;
use allclear_core::model::blocker::Blocker;
use allclear_core::model::command::{ApplyResult, Command, RequestAction};
use allclear_core::model::event::Event;
use allclear_core::model::operator::OperatorRequest;

pub(crate) async fn ask(here: ModelContext, wish: ScenarioRequest) {
    let Some(what) = asked(&here, wish) else { return };
    let command = Command::RequestAction(RequestAction { what, who: "somebody".into(), reason: "a reason".into() });
    for _ in 0..3 {
        if let Ok(verdict) = here.propose(&command).await {
            if verdict == ApplyResult::Applied {
                here.world.judge.borrow_mut().acknowledged += 1;
            }
            return;
        }
        here.sleep(Duration::from_millis(100)).await;
    }
}

fn asked(here: &ModelContext, wish: ScenarioRequest) -> Option<OperatorRequest> {
    let state = here.state();
    let event = |place: usize| -> Option<&Event> { state.open_events().nth(place % state.open.len().max(1)) };
    let id = |place: usize| event(place).map(|event| event.announcement.id.clone());
    Some(match wish {
        ScenarioRequest::Hold(place, span) => {
            OperatorRequest::Hold { event: id(place)?, until: here.time().plus(span), no_hooks: false }
        }
        ScenarioRequest::Release(place) => OperatorRequest::Release { event: id(place)? },
        ScenarioRequest::Pause(span) => OperatorRequest::Pause { until: here.time().plus(span) },
        ScenarioRequest::Resume => OperatorRequest::Resume,
        ScenarioRequest::Approve(place) => {
            OperatorRequest::Approve { event: id(place)?, revision: event(place)?.revision, over_budget: false }
        }
        ScenarioRequest::Prepare(place, after) => {
            OperatorRequest::Prepare { event: id(place)?, from: here.time().plus(after) }
        }
        ScenarioRequest::Retry(place) => {
            let Blocker::HookFailed { member, hook, .. } =
                failure::holding_failure(&state, event(place)?, here.time())?
            else {
                return None;
            };
            OperatorRequest::Retry { event: id(place)?, member, hook }
        }
        ScenarioRequest::Skip(place) => {
            let event = event(place)?;
            let step = required::required_steps(&state, event).into_iter().next()?;
            OperatorRequest::Skip { event: event.announcement.id.clone(), member: step.member, hook: step.id }
        }
    })
}
