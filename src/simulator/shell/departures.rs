//! The leader's part in departures, as `replica::departures`.

use std::time::Duration;

use super::Here;
use crate::machine::departure::departing;

const LOOK_EVERY: Duration = Duration::from_secs(1);

pub(super) async fn run(here: Here) {
    loop {
        here.sleep(LOOK_EVERY).await;
        if !here.standing().leads() {
            continue;
        }
        for gone in departing(&here.state(), &here.situation()) {
            if let Some(gone) = here.world.vm(&gone) {
                here.world.remove(here.me, gone);
            }
        }
    }
}
