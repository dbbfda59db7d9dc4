//! The leader's loop: waits, reads, plans, proposes, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::here::Here;
use crate::machine::command::Verdict;
use crate::machine::plan::plan;

/// Deadlines pass without anybody saying so: the longest wait while an event is open.
const TICK: Duration = Duration::from_millis(50);
/// And while none is.
const IDLE_TICK: Duration = Duration::from_secs(1);

pub(super) async fn drive(here: Arc<Here>, stop: CancellationToken) {
    let mut standing = here.consensus.standing();
    let mut state = here.state.clone();
    let mut contacts = here.contacts.changes();
    loop {
        let leads = standing.borrow_and_update().leads();
        here.contacts.leading(leads);
        state.mark_unchanged();
        contacts.mark_unchanged();
        if leads && stop.run_until_cancelled(propose_what_is_due(&here)).await.is_none() {
            return;
        }
        let tick = if leads && !here.state().open.is_empty() { TICK } else { IDLE_TICK };
        tokio::select! {
            _ = standing.wait_for(|standing| standing.leads() != leads) => {}
            _ = state.changed() => {}
            _ = contacts.changed() => {}
            () = tokio::time::sleep(tick) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn propose_what_is_due(here: &Here) {
    for command in plan(&here.state(), &here.situation()) {
        match here.propose(&command).await {
            Ok(Verdict::Applied) => tracing::debug!(command = command.as_word(), "decided"),
            Ok(Verdict::Ignored(why)) => tracing::debug!(command = command.as_word(), %why, "not decided"),
            Err(error) => {
                tracing::debug!(command = command.as_word(), %error, "not proposed");
                return;
            }
        }
    }
}
