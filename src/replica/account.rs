//! Gives account: tells the log what this replica did without a quorum, as soon as it reaches one, and says so even
//! where there is nothing to tell, because the cluster is not sure of it until it has.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::here::Here;
use crate::machine::command::Command;
use crate::machine::suspicion::account_due;

/// The pause before an account that did not reach the log is given again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn give(here: Arc<Here>, stop: CancellationToken) {
    let (mut state, mut journal) = (here.state.clone(), here.journal.changes());
    let mut standing = here.consensus.standing();
    loop {
        state.mark_unchanged();
        journal.mark_unchanged();
        let reaches = standing.borrow_and_update().quorum;
        let is_owed = if reaches { stop.run_until_cancelled(settle(&here)).await } else { Some(false) };
        let Some(is_owed) = is_owed else { return };
        tokio::select! {
            _ = state.changed() => {}
            _ = journal.changed() => {}
            _ = standing.wait_for(|standing| standing.quorum != reaches) => {}
            () = tokio::time::sleep(AGAIN_AFTER), if is_owed => {}
            () = stop.cancelled() => return,
        }
    }
}

/// True when there is still something to tell.
async fn settle(here: &Here) -> bool {
    if let Err(error) = here.journal.prune(&here.state()).await {
        tracing::error!(%error, "the journal of approvals without a quorum cannot be written");
    }
    let Some(account) = account(here).await else { return false };
    match here.propose(&account).await {
        Ok(verdict) => tracing::debug!(?verdict, "account given"),
        Err(error) => tracing::debug!(%error, "account not given yet"),
    }
    true
}

/// What is owed; the number is read while nothing can be written, so that the account says all there is under it.
async fn account(here: &Here) -> Option<Command> {
    let _turn = here.journal.turn().await;
    account_due(&here.state(), &here.name, &here.journal.entries())
}
