//! Any commands in any order: proposals of the planner, answers of replicas, and commands without a legitimate use,
//! from any replica, at times that advance, repeat and go back. After each command every promise holds and the state
//! can be stored and read; an ignored command changed nothing.

mod generator;
mod odd;

use allclear::core::apply::apply;
use allclear::core::model::claim::Reason;
use allclear::core::model::command::{ApplyResult, ClaimApproval, Command, Entry};
use allclear::core::model::state::State;

use crate::hostile::dice::{Dice, rounds};
use crate::hostile::memory;
use crate::hostile::sequence::{self, Fold, written, wrong};
use crate::hostile::shrink::shrunk;

const LENGTH: usize = 60;
/// The stored form is checked after so many entries, and at every entry while a case is shortened.
const LOOK_EVERY: usize = 8;

/// A sequence that breaks a property, shortened.
fn found(fold: Fold, seeds: std::ops::Range<u64>) -> Option<(String, Vec<Entry>)> {
    let mut applied = 0;
    for seed in seeds.clone() {
        let (sequence, what) = played(fold, seed, &mut applied);
        if let Some(what) = what {
            let fails = |entries: &[Entry]| wrong(fold, entries).as_ref() == Some(&what);
            return Some((format!("seed {seed}: {what}"), shrunk(sequence, fails)));
        }
    }
    let share = applied * 100 / (seeds.count() * LENGTH).max(1);
    println!("{share} % of the commands were applied");
    assert!(share > 20, "only {share} % of the commands were applied: they prove little");
    None
}

fn played(fold: Fold, seed: u64, applied: &mut usize) -> (Vec<Entry>, Option<String>) {
    let (mut dice, mut state, mut sequence) = (Dice::of(seed), State::default(), Vec::new());
    let mut world = generator::World::new(&mut dice);
    while sequence.len() < LENGTH {
        let entry = world.entry(&mut dice, &state);
        sequence.push(entry.clone());
        let revision = state.clone();
        let is_looked_at = sequence.len() % LOOK_EVERY == 0;
        let step = sequence::step(fold, &mut state, &entry);
        if let Err(what) = step.and_then(|()| if is_looked_at { sequence::kept(&state) } else { Ok(()) }) {
            return (sequence, Some(what));
        }
        *applied += usize::from(State { now: state.now, ..revision } != state);
    }
    (sequence, None)
}

#[test]
fn no_sequence_of_commands_breaks_a_promise() {
    if let Some((what, entries)) = found(apply, 0..rounds(1_200)) {
        panic!("{what}; keep it in tests/hostile/found under a name that says what it is:\n{}", written(&entries));
    }
    memory::is_bounded();
}

/// A deliberate mistake: a replica that claims for the operator gets the claim.
fn claims_for_the_asking(state: &mut State, entry: &Entry) -> ApplyResult {
    if let Command::ClaimApproval(ClaimApproval { event, approver, reason: Reason::Operator, until, .. }) =
        &entry.command
        && let Some(open) = state.open.get_mut(event)
        && open.stage().may_become(allclear::core::model::lifecycle::Stage::Claimed)
    {
        let open = std::sync::Arc::make_mut(open);
        state.attempts += 1;
        state.now = state.now.max(entry.at);
        open.entered.push((allclear::core::model::lifecycle::Stage::Claimed, state.now));
        open.revision += 1;
        open.claims.push(allclear::core::model::claim::Claim {
            attempt: allclear::core::model::id::AttemptId(state.attempts),
            approver: approver.clone(),
            reason: Reason::Operator,
            decided_at_revision: 1,
            stints: Vec::new(),
            at: state.now,
            until: *until,
            outcome: None,
            is_last_resort: false,
        });
        return ApplyResult::Applied;
    }
    apply(state, entry)
}

/// A deliberate mistake: the time is copied from the entry unchecked.
fn lets_time_go_back(state: &mut State, entry: &Entry) -> ApplyResult {
    let verdict = apply(state, entry);
    state.now = entry.at;
    verdict
}

#[test]
fn a_fold_with_a_mistake_is_found_out_and_the_case_is_made_short() {
    for fold in [claims_for_the_asking as Fold, lets_time_go_back] {
        let (what, entries) = found(fold, 0..300).expect("nothing was found");
        println!("{what}, in {} entries", entries.len());
        assert!(entries.len() <= 12, "{what}:\n{}", written(&entries));
        assert_eq!(sequence::read(&written(&entries)), entries);
    }
}
