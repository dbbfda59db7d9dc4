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
