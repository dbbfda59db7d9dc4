//! What operators asked for, in words.

use crate::replica::clock::rfc3339;
use allclear_core::isolation::unaware::unaware;
use allclear_core::model::operator::{Halt, What, Wish};
use allclear_core::model::state::State;
use allclear_core::situation::Situation;
use allclear_wire::pb::allclear::operator::v1 as shown;

pub(super) fn shown(halt: &Halt, state: &State, situation: &Situation) -> shown::Pause {
    shown::Pause {
        by: halt.by.clone(),
        until: rfc3339(halt.until),
        reason: halt.reason.clone(),
        unacknowledged_by: unaware(state, situation, halt.number).iter().map(ToString::to_string).collect(),
    }
}

/// One line of a timeline.
pub(super) fn told(wish: &Wish) -> String {
    let (who, reason) = (&wish.who, &wish.reason);
    let what = match &wish.what {
        What::Hold { until, no_hooks } => {
            let hooks = if *no_hooks { ", hooks too," } else { "" };
            format!("held{hooks} by {who} until {}", rfc3339(*until))
        }
        What::Release => format!("released by {who}"),
        What::Approve { revision, over_budget } => {
            let over = if *over_budget { " whoever else is out" } else { "" };
            format!("approved by {who} as of revision {revision}{over}")
        }
        What::Restored(member) => format!("{who} says that {member} is in service"),
        What::Pause { until } => format!("all approvals paused by {who} until {}", rfc3339(*until)),
        What::Resume => format!("approvals resumed by {who}"),
        What::Other(what) => format!("{who} asks: {what}"),
    };
    if reason.is_empty() { what } else { format!("{what}: {reason}") }
}
