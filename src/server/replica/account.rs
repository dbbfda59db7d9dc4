//! Gives account: tells the log what this replica did without a quorum, as soon as it reaches one, and says so even
//! where there is nothing to tell, because the cluster is not sure of it until it has. On a new disk it does not know what
//! it did, and waits until that has shown.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::clock;
use super::context::Context;
use super::errands::LeftOver;
use super::poller::Observer;
use allclear_core::isolation::reconciliation::reconciliation_due;
use allclear_core::model::command::Command;
use allclear_core::new_disk::{Since, may_account};

/// The pause before an account that did not reach the log is given again.
const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn give(
    here: Arc<Context>,
    observer: Arc<Observer>,
    inherited: watch::Receiver<Option<LeftOver>>,
    stop: CancellationToken,
) {
    if here.journal.is_new() && stop.run_until_cancelled(forgets(&here, &observer, inherited)).await.is_none() {
        return;
    }
    let (mut state, mut journal) = (here.state.clone(), here.journal.changes());
    let mut standing = here.consensus.status();
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

/// Returns when what an earlier life of this replica may have approved alone, and its disk forgot, has shown.
async fn forgets(here: &Context, observer: &Observer, mut inherited: watch::Receiver<Option<LeftOver>>) {
    let (began, mut polls) = (clock::monotonic(), observer.polls());
    let Ok(is_known) = inherited.wait_for(Option::is_some).await.map(|known| known.is_some_and(|it| it.is_known))
    else {
        return std::future::pending().await;
    };
    if is_known {
        tracing::info!("this disk is new: it gives account when what it may have approved before has shown");
        while !has_shown(here, observer, clock::monotonic().since(began)) {
            tokio::select! {
                _ = polls.changed() => {}
                () = tokio::time::sleep(AGAIN_AFTER) => {}
            }
        }
    }
    while let Err(error) = here.journal.keep().await {
        tracing::error!(%error, "the journal of approvals without a quorum cannot be written");
        tokio::time::sleep(AGAIN_AFTER).await;
    }
}

fn has_shown(here: &Context, observer: &Observer, runs_for: Duration) -> bool {
    let (document, age) = (observer.trusted_document(), observer.health().document_age);
    let has_former_vote = here.consensus.is_left_behind();
    let since = Since { runs_for, document: document.as_ref().zip(age), has_former_vote };
    may_account(&here.state(), &here.name, &here.timing, &since)
}

/// True when there is still something to tell.
async fn settle(here: &Context) -> bool {
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
async fn account(here: &Context) -> Option<Command> {
    let _turn = here.journal.turn().await;
    reconciliation_due(&here.state(), &here.name, &here.journal.entries())
}
