//! Watches for the time without a leader on this replica, and approves by the core's procedure.

use std::time::Duration;

use super::ModelContext;
use allclear_core::isolation::watch::IsolationWatch;
use allclear_core::procedure::isolated_approval::{AGAIN_AFTER, IsolatedHost, approve_isolated, isolated_view};

const TICK: Duration = Duration::from_millis(250);

pub(super) async fn run(here: ModelContext) {
    let mut watch = IsolationWatch::new(here.steady());
    let mut not_before = watch.last_tick;
    loop {
        here.sleep(TICK).await;
        if makes!(here.world.mutation, PauseCounts) {
            watch.last_tick = here.steady();
        }
        let view = isolated_view(&here, &mut watch).await;
        let is_isolated = view.is_some();
        here.process.alone.replace(view);
        let input = is_isolated.then(|| here.planning_input());
        let due = input.filter(|input| here.steady() >= not_before && here.event_to_approve(input).is_some());
        if let Some(input) = due {
            let _ = approve_isolated(&here, input, None).await;
            not_before = here.steady().plus(AGAIN_AFTER);
            watch.last_tick = here.steady();
        }
    }
}
