//! The condition under which a replica with a new disk may report that the replica approved nothing alone. A previous
//! run may have approved an event that is in no journal now. Then the event has started or ended since, and the
//! replica's endpoint shows the change.

use crate::model::document::Document;
use crate::model::id::VmName;
use crate::model::state::State;
use crate::planning_input::Timing;
use core::time::Duration;

/// Facts known since the disk was replaced.
#[derive(Clone, Copy, Debug)]
pub struct Since<'a> {
    /// For how long the replica has run on the new disk.
    pub runs_for: Duration,
    /// The last document of the endpoint, and its age.
    pub document: Option<(&'a Document, Duration)>,
    /// The lost disk still votes under the replica's name, so the replica's reconciliation would cover another voter.
    pub has_former_vote: bool,
}

/// The replica has waited for the duration of an approval that began earlier, has received a document afterwards, and
/// the log contains every event of the document.
pub fn may_account_for_lost_disk(state: &State, me: &VmName, timing: &Timing, since: &Since<'_>) -> bool {
    let waits = timing.takeover_after.saturating_add(timing.claim_lease);
    let Some((document, age)) = since.document else { return false };
    let told = state.replicas.get(me).and_then(|replica| replica.document.as_ref());
    let is_told = |told: &Document| document.events.iter().all(|event| told.get(&event.id).is_some());
    let has_looked = since.runs_for >= waits.saturating_add(age);
    has_looked && !since.has_former_vote && (document.events.is_empty() || told.is_some_and(is_told))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apply::report;
    use crate::model::document::Status;
    use crate::model::document::tests::announced;

    const WAITS: Duration = Duration::from_secs(15);

    #[test]
    fn it_has_to_wait_and_then_to_look_and_to_tell_what_it_saw() {
        let (me, timing) = (VmName::new("a"), Timing::default());
        let mut state = State::default();
        let (empty, listing) = (Document::default(), Document::new([announced("e1", Status::Started)].into()));
        let ago = Duration::from_secs(1);
        let after = |runs_for| Since { runs_for, document: Some((&empty, ago)), has_former_vote: false };
        let late = after(WAITS + ago);
        assert!(!may_account_for_lost_disk(&state, &me, &timing, &after(WAITS)), "it has not looked since");
        assert!(may_account_for_lost_disk(&state, &me, &timing, &late));
        assert!(!may_account_for_lost_disk(&state, &me, &timing, &Since { document: None, ..late }));
        assert!(!may_account_for_lost_disk(&state, &me, &timing, &Since { has_former_vote: true, ..late }));
        let saw = Since { document: Some((&listing, ago)), ..late };
        assert!(!may_account_for_lost_disk(&state, &me, &timing, &saw));
        state.replicas.entry(me.clone()).or_default();
        report::report_document(&mut state, &me, 0, &listing).unwrap();
        assert!(may_account_for_lost_disk(&state, &me, &timing, &saw));
    }
}
