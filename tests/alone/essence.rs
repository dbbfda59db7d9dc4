//! Distinguishing parts of the model's states: everything which can still make a difference. Counts and times which no
//! decision reads are left out, so that states which differ in nothing else are visited once.

use std::hash::{Hash, Hasher};

use allclear::core::model::claim::PostOutcome;
use allclear::core::model::event::Event;
use allclear::core::model::isolated_approval::IsolatedApproval;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;

use crate::world::{Behind, Local, Shown, World, name};

impl Hash for World {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { log, moment, clouds, leader, term, turn, leading_since: _, replicas, wire, late, faults, breach } =
            self;
        // The wait after an announcement is no longer than the loss of contact, unless the announcement came after the
        // loss.
        let alone = replicas.iter().filter(|local| local.behind.is_some()).map(|local| local.alone_since).min();
        for cloud in clouds {
            let since = alone.filter(|_| cloud.shows == Shown::Scheduled).map(|alone| alone.max(cloud.since));
            (since, cloud.shows, cloud.approved, cloud.is_late).hash(hasher);
        }
        hash(log, hasher);
        (moment, leader, term, turn, replicas, wire, late, faults, breach).hash(hasher);
        for (replica, local) in replicas.iter().enumerate() {
            let (acknowledged, known) = (local.acknowledged.as_ref(), log.reconcile_states.get(&name(replica)));
            let is_older = acknowledged.zip(known).is_some_and(|((_, at), known)| known.since > *at);
            is_older.hash(hasher);
        }
    }
}

impl Hash for Local {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { up, cut, behind, alone_since, acknowledged, sees, journal, alone, post, account, chosen } = self;
        (up, cut, behind, alone_since, acknowledged, sees).hash(hasher);
        (journal, alone, post, account, chosen).hash(hasher);
    }
}

impl Hash for Behind {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { state, applied } = self;
        hash(state, hasher);
        if let Some(applied) = applied {
            hash(applied, hasher);
        }
    }
}

fn hash<H: Hasher>(state: &State, hasher: &mut H) {
    for replica in state.replicas.values() {
        (&replica.document, replica.stale_since).hash(hasher);
    }
    for suspicion in state.reconcile_states.values() {
        (suspicion.number, suspicion.is_reconciled).hash(hasher);
    }
    (&state.leadership, state.open.len(), state.history.len()).hash(hasher);
    let has_budget =
        state.replicas.values().any(|replica| replica.workloads.iter().any(|workload| !workload.hooks.is_empty()));
    for event in state.events() {
        has_budget.then(|| event.first_seen()).hash(hasher);
        hash_event(event, hasher);
    }
}

/// Times count as long as an approval is still pending.
fn hash_event<H: Hasher>(event: &Event, hasher: &mut H) {
    let is_waiting = !event.stage().is_over() && !event.is_accepted();
    let of = |outcome: &Option<(PostOutcome, Timestamp)>| {
        let (outcome, at) = outcome.clone().unzip();
        (outcome, at.filter(|_| is_waiting))
    };
    let Event {
        announcement,
        seen_by,
        treatment,
        attempts,
        waivers,
        claims,
        isolated_approvals: takeovers,
        ending,
        operator_records: wishes,
        ..
    } = event;
    (&announcement.id, seen_by, event.stage(), event.over_at(), ending).hash(hasher);
    (treatment.is_some(), attempts, waivers, wishes, claims.len(), takeovers.len()).hash(hasher);
    for claim in claims {
        (&claim.approver, claim.attempt, is_waiting.then_some(claim.until), of(&claim.outcome)).hash(hasher);
    }
    for IsolatedApproval { approver, at, outcome, recorded, .. } in takeovers {
        (approver, at, of(outcome), recorded.filter(|_| is_waiting)).hash(hasher);
    }
}
