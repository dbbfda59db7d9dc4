//! The state with the unapplied end of the log applied.

use crate::apply::apply;
use crate::model::isolation::IsolatedView;
use crate::model::state::State;

impl IsolatedView {
    /// The state if everything in the replica's log were committed.
    pub fn with_unapplied(&self, state: &State) -> State {
        let mut furthest = state.clone();
        for entry in &self.tail {
            apply(&mut furthest, entry);
        }
        furthest
    }
}
