//! Voters that may hold unreported approvals.

use crate::model::id::VmName;
use crate::model::reconcile_state::ReconcileState;
use crate::model::state::State;

impl State {
    /// The voters that may be approving alone.
    pub fn suspects(&self) -> impl Iterator<Item = &VmName> {
        self.reconcile_states.iter().filter(|(_, suspicion)| !suspicion.is_reconciled).map(|(name, _)| name)
    }

    pub fn is_suspect(&self, replica: &VmName) -> bool {
        self.reconcile_states.get(replica).is_some_and(|suspicion| !suspicion.is_reconciled)
    }

    /// A voter of a pair, which approves alone while the other voter is unreachable, has yet to report its approvals.
    pub fn is_pair_in_doubt(&self) -> bool {
        let voters = self.leadership.as_ref().map_or(&[][..], |leadership| &leadership.voters);
        voters.len() == 2 && voters.iter().any(|voter| self.is_suspect(voter))
    }

    pub(crate) fn start_number(&mut self, replica: &VmName) {
        let number = self.reconcile_states.get(replica).map_or(0, |known| known.number) + 1;
        let suspicion = ReconcileState { number, since: self.now, is_reconciled: false };
        self.reconcile_states.insert(replica.clone(), suspicion);
    }
}
