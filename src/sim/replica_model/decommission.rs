//! The leader's part in the membership of the cluster, as `replica::departures` and the upkeep of `consensus`.

use std::time::Duration;

use super::ModelContext;
use allclear_core::plan::decommission::departing;

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(here: ModelContext) {
    loop {
        here.sleep(LOOK_EVERY).await;
        if !here.status().leads() {
            continue;
        }
        for gone in departing(&here.state(), &here.planning_input()) {
            if let Some(gone) = here.world.vm(&gone) {
                here.world.remove(here.me, gone);
            }
        }
        here.world.complete(here.me);
    }
}
