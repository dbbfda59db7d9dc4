//! Tells the log what this replica did without a quorum, as `replica::account`.

use std::time::Duration;

use super::Here;
use crate::machine::command::Command;
use crate::machine::suspicion::unrecorded;
use crate::simulator::mistake::Mistake;
use crate::simulator::tasks::first;

const ENTRIES_AT_ONCE: usize = 1;
/// Under a number that there never is, an account clears nobody.
const MORE_FOLLOWS: u64 = 0;
const AGAIN_AFTER: Duration = Duration::from_millis(100);

pub(super) async fn give(here: Here) {
    let world = here.world.clone();
    let tasks = &world.tasks;
    loop {
        let (state, journal) = (here.process.signals.changed.version(), here.process.signals.journaled.version());
        let standing = here.process.signals.standing.version();
        let is_owed = here.standing().quorum && settle(&here).await;
        let news = first(
            first(
                here.process.signals.changed.changed(tasks, state),
                here.process.signals.journaled.changed(tasks, journal),
            ),
            here.process.signals.standing.changed(tasks, standing),
        );
        if is_owed {
            let _ = first(news, here.sleep(AGAIN_AFTER)).await;
        } else {
            let _ = news.await;
        }
    }
}

/// True when there is still something to tell.
async fn settle(here: &Here) -> bool {
    prune(here);
    // Who writes an entry now is not in the middle of it: the turn is held across the write.
    while here.process.has_turn.get() {
        here.sleep(Duration::from_millis(5)).await;
    }
    let Some(account) = account(here) else { return false };
    if here.world.mistake != Mistake::NoAccount {
        let _ = here.propose(&account).await;
    }
    true
}

fn account(here: &Here) -> Option<Command> {
    let state = here.state();
    let suspicion = state.suspicions.get(here.name());
    let mut journal = unrecorded(&state, &here.world.nodes[here.me].journal.borrow());
    let is_owed = suspicion.is_some_and(|suspicion| !suspicion.is_cleared) || !journal.is_empty();
    let is_all = journal.len() <= ENTRIES_AT_ONCE;
    journal.truncate(ENTRIES_AT_ONCE);
    let number = suspicion.filter(|_| is_all).map_or(MORE_FOLLOWS, |suspicion| suspicion.number);
    is_owed.then_some(Command::Account { number, journal })
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
