//! Tells the log what this replica did without a quorum, as `replica::account`.

use std::time::Duration;

use super::Here;
use crate::machine::suspicion::{account_due, unrecorded};
use crate::simulator::mistake::Mistake;
use crate::simulator::tasks::News;

const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn give(here: Here) {
    let signals = &here.process.signals;
    loop {
        let news = News::of([&signals.changed, &signals.journaled, &signals.standing]);
        let is_owed = here.standing().quorum && settle(&here).await;
        here.wait(news, is_owed.then_some(AGAIN_AFTER)).await;
    }
}

/// True when there is still something to tell.
async fn settle(here: &Here) -> bool {
    prune(here);
    // Who writes an entry now is not in the middle of it: the turn is held across the write.
    while here.process.has_turn.get() {
        here.sleep(Duration::from_millis(5)).await;
    }
    let journal = here.world.nodes[here.me].journal.borrow().clone();
    let Some(account) = account_due(&here.state(), here.name(), &journal) else { return false };
    if here.world.mistake != Mistake::NoAccount {
        let _ = here.propose(&account).await;
    }
    true
}

/// Lets go of what the log knows to its end.
fn prune(here: &Here) {
    if here.process.has_turn.get() {
        return;
    }
    let mut journal = here.world.nodes[here.me].journal.borrow_mut();
    if !journal.is_empty() {
        let unknown = unrecorded(&here.state(), &journal);
        journal.retain(|entry| entry.takeover.outcome.is_none() || unknown.contains(entry));
    }
}
