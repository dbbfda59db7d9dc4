//! Tells the log what this replica did without a quorum, as `replica::account`.

use std::time::Duration;

use super::ModelContext;
use crate::tasks::SignalChanges;
use allclear_core::isolation::reconciliation::{reconciliation_due, unrecorded};
use allclear_core::new_disk::{Since, may_account};

const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn give(here: ModelContext) {
    let signals = &here.process.signals;
    forgets(&here).await;
    loop {
        let news = SignalChanges::of([&signals.changed, &signals.journaled, &signals.standing]);
        let is_owed = here.standing().quorum && settle(&here).await;
        here.wait(news, is_owed.then_some(AGAIN_AFTER)).await;
    }
}

/// Returns when what was approved alone on a disk that is lost has shown.
async fn forgets(here: &ModelContext) {
    let began = here.steady();
    let has_new_journal = &here.world.nodes[here.me].has_new_journal;
    let may_account = || {
        let (document, age) = (here.believed(), here.health().document_age);
        let runs_for = here.steady().since(began);
        let since = Since { runs_for, document: document.as_ref().zip(age), has_former_vote: false };
        may_account(&here.state(), here.name(), &here.world.scenario.timing, &since)
    };
    while has_new_journal.get() {
        match here.process.is_known.get() {
            Some(is_known) if !is_known || may_account() => has_new_journal.set(false),
            Some(_) | None => here.sleep(AGAIN_AFTER).await,
        }
    }
}

/// True when there is still something to tell.
async fn settle(here: &ModelContext) -> bool {
    prune(here);
    // Who writes an entry now is not in the middle of it: the turn is held across the write.
    while here.process.has_turn.get() {
        here.sleep(Duration::from_millis(5)).await;
    }
    let journal = here.world.nodes[here.me].journal.borrow().clone();
    let Some(account) = reconciliation_due(&here.state(), here.name(), &journal) else { return false };
    if !makes!(here.world.mistake, NoAccount) {
        let _ = here.propose(&account).await;
    }
    true
}

/// Lets go of what the log knows to its end.
fn prune(here: &ModelContext) {
    if here.process.has_turn.get() {
        return;
    }
    let mut journal = here.world.nodes[here.me].journal.borrow_mut();
    if !journal.is_empty() {
        let unknown = unrecorded(&here.state(), &journal);
        journal.retain(|entry| entry.takeover.outcome.is_none() || unknown.contains(entry));
    }
}
