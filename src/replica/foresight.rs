//! What the leader has stamped to be appended and not applied yet, and how it looks at the cluster: with both, the next
//! decision goes to the log together with what brings it about (`machine::foresight`).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use super::here::Here;
use crate::machine::command::{Command, Entry};
use crate::machine::foresight::{brings_about, foresee};
use crate::machine::state::State;

/// With more on its way nothing is foreseen: the driver will decide about all of it at once.
const APPENDED_AT_MOST: usize = 8;

/// Sees nothing before [`Foresight::open`].
#[derive(Default)]
pub struct Foresight {
    here: OnceLock<Weak<Here>>,
    appended: Mutex<VecDeque<Entry>>,
}

impl Foresight {
    pub(super) fn open(&self, here: &Arc<Here>) {
        let _ = self.here.set(Arc::downgrade(here));
    }

    /// What this replica, as the leader, decides as the consequence of an entry that it is about to append.
    pub(super) fn consequences(&self, state: &State, told: &Entry) -> Vec<Entry> {
        let Some(here) = self.here.get().and_then(Weak::upgrade).filter(|_| brings_about(&told.command)) else {
            return Vec::new();
        };
        let appended = self.appended();
        if appended.len() >= APPENDED_AT_MOST {
            return Vec::new();
        }
        // A standing that is a moment old may be of a leadership before this one.
        let situation = here.situation_under(&here.consensus.standing_now());
        let decided = foresee(state, &*appended, told, &situation);
        let stamped = |command: Command| Entry { at: told.at, by: here.name.clone(), command };
        decided.into_iter().map(stamped).collect()
    }

    /// What openraft then refuses is forgotten with the next entry that is applied.
    pub(super) fn stamped(&self, entries: Vec<Entry>) {
        let mut appended = self.appended();
        if appended.len() < APPENDED_AT_MOST {
            appended.extend(entries);
        }
    }

    /// Whatever was appended before this one is applied as well, or never will be.
    pub(super) fn applied(&self, entry: &Entry) {
        let mut appended = self.appended();
        let applied = appended.iter().position(|appended| appended == entry).map_or(appended.len(), |place| place + 1);
        appended.drain(..applied);
    }

    pub(super) fn forget(&self) {
        self.appended().clear();
    }

    fn appended(&self) -> MutexGuard<'_, VecDeque<Entry>> {
        self.appended.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::document::Document;
    use crate::machine::id::VmName;
    use crate::machine::time::Timestamp;

    fn entry(number: i64) -> Entry {
        Entry { at: Timestamp(number), by: VmName::new("a"), command: Command::Notified { told: Vec::new() } }
    }

    fn times(foresight: &Foresight) -> Vec<i64> {
        foresight.appended().iter().map(|entry| entry.at.0).collect()
    }

    #[test]
    fn what_is_applied_is_on_its_way_no_more_nor_is_what_was_to_be_applied_before_it() {
        let foresight = Foresight::default();
        foresight.stamped((1..=4).map(entry).collect());
        foresight.applied(&entry(1));
        assert_eq!(times(&foresight), [2, 3, 4]);
        foresight.applied(&entry(3));
        assert_eq!(times(&foresight), [4], "2 was refused, or it would have come first");
        foresight.applied(&entry(9));
        assert_eq!(times(&foresight), [0; 0], "of another leader, so 4 is not to come");
    }

    #[test]
    fn what_never_comes_to_be_applied_does_not_pile_up() {
        let foresight = Foresight::default();
        for number in 0..1_000 {
            foresight.stamped(vec![entry(number)]);
        }
        assert_eq!(times(&foresight).len(), APPENDED_AT_MOST);
    }

    #[test]
    fn nothing_is_foreseen_before_there_is_a_replica_to_look_at() {
        let told = Entry { command: Command::Report { after: 0, document: Document::default() }, ..entry(1) };
        assert_eq!(Foresight::default().consequences(&State::default(), &told), []);
    }
}
