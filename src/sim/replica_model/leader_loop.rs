//! The leader's loop, as `replica::driver`.

use std::time::Duration;

use super::ModelContext;
use crate::tasks::SignalChanges;
use allclear_core::cluster_time::Trust;
use allclear_core::leadership::transfer_target;
use allclear_core::model::time::Timestamp;

/// Longer than the 50 ms of the program: every change triggers a check for pending actions anyway.
const TICK: Duration = Duration::from_millis(500);
const IDLE_TICK: Duration = Duration::from_secs(1);
const HAND_OVER_WITHIN: Duration = Duration::from_secs(2);
const HAND_OVER_AGAIN_AFTER: Duration = Duration::from_secs(10);

pub(super) async fn drive(here: ModelContext) {
    let signals = &here.process.signals;
    let mut tried_to_go = None;
    loop {
        let news = SignalChanges::of([&signals.status, &signals.changed, &signals.contact]);
        let leads = here.status().leads();
        here.process.contacts.borrow_mut().leading(here.steady(), leads);
        if leads {
            here.process.time.borrow_mut().lead();
            // Planned actions contain times.
            if here.trust() != Trust::Unknown && !hand_over_if_due(&here, &mut tried_to_go).await {
                propose_what_is_due(&here).await;
            }
        }
        let is_busy = leads && !here.state().open.is_empty();
        here.wait(news, Some(if is_busy { TICK } else { IDLE_TICK })).await;
    }
}

/// True if another replica leads from now on.
async fn hand_over_if_due(here: &ModelContext, tried: &mut Option<Timestamp>) -> bool {
    let now = here.steady();
    if tried.is_some_and(|tried| now.since(tried) < HAND_OVER_AGAIN_AFTER) {
        return false;
    }
    let Some(heir) = transfer_target(&here.state(), &here.planning_input()).and_then(|heir| here.world.vm(&heir))
    else {
        return false;
    };
    *tried = Some(now);
    if !here.world.hand_over(here.me, heir) {
        return false;
    }
    here.within(now.plus(HAND_OVER_WITHIN), here.is_led_by_another(here.me)).await.is_some()
}

async fn propose_what_is_due(here: &ModelContext) {
    let due = here.world.mutation.plan(&here.state(), &here.planning_input());
    for command in due {
        if here.propose(&command).await.is_err() {
            return;
        }
    }
}
