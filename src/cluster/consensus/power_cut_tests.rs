//! Power cuts at every moment of a replica's life on the disk: for any kept, dropped or torn subset of the unsynced
//! writes, all acknowledged data is there, nothing else is, and the log has no hole.

use std::collections::BTreeSet;

use super::recorded_tests::{Held, Life, Step, live, open, runs_long_tests};

const SECTOR: usize = 512;
/// Any subset of the writes between two syncs may be missing; beyond this number, not every combination is tried.
const WHOLLY: usize = 5;

/// The steps from one sync to the next.
struct Epoch {
    /// All data synced before.
    synced: Vec<u8>,
    pending: Vec<Step>,
    /// The number of acknowledged deeds, and the number of counted writes.
    acknowledged: usize,
    counted: u64,
}

fn epochs(steps: &[Step]) -> Vec<Epoch> {
    let (mut epochs, mut image, mut pending) = (Vec::new(), Vec::new(), Vec::new());
    let (mut acknowledged, mut counted) = (0, 0);
    for step in steps {
        match step {
            Step::Length(_) | Step::Write(..) => pending.push(step.clone()),
            Step::Acknowledged(count) => (acknowledged, counted) = (acknowledged + 1, *count),
            Step::Sync => {
                let synced: Vec<u8> = std::mem::take(&mut image);
                image.clone_from(&synced);
                for step in &pending {
                    take(&mut image, step);
                }
                epochs.push(Epoch { synced, pending: std::mem::take(&mut pending), acknowledged, counted });
            }
        }
    }
    epochs
}

/// A write beyond the end of a file whose new length was lost is lost with the length.
fn take(image: &mut Vec<u8>, step: &Step) {
    match step {
        Step::Length(length) => image.resize(*length, 0),
        Step::Write(offset, bytes) => put(image, *offset, bytes),
        Step::Sync | Step::Acknowledged(_) => {}
    }
}

fn put(image: &mut [u8], offset: usize, bytes: &[u8]) {
    let length = bytes.len().min(image.len().saturating_sub(offset));
    if let Some(place) = image.get_mut(offset..offset + length) {
        place.copy_from_slice(&bytes[..length]);
    }
}

/// The subsets of kept writes, for `count` writes.
fn choices(count: usize) -> BTreeSet<Vec<bool>> {
    let all = |kept: bool| vec![kept; count];
    let mut choices = BTreeSet::from([all(true), all(false)]);
    if count <= WHOLLY {
        choices.extend((0..1_usize << count).map(|bits| (0..count).map(|at| bits >> at & 1 == 1).collect()));
    }
    for at in 0..count {
        choices.insert((0..count).map(|other| other < at).collect());
        choices.insert((0..count).map(|other| other == at).collect());
        choices.insert((0..count).map(|other| other != at).collect());
        choices.insert((0..count).map(|other| other.is_multiple_of(2) == at.is_multiple_of(2)).collect());
    }
    choices
}

/// Every image left by a cut within the epoch.
fn images(epoch: &Epoch, each: &mut impl FnMut(Vec<u8>, String)) {
    let with = |kept: &dyn Fn(usize) -> bool| {
        let mut image = epoch.synced.clone();
        epoch.pending.iter().enumerate().filter(|(at, _)| kept(*at)).for_each(|(_, step)| take(&mut image, step));
        image
    };
    for choice in choices(epoch.pending.len()) {
        each(with(&|at| choice[at]), format!("kept {choice:?}"));
    }
    for (torn, step) in epoch.pending.iter().enumerate() {
        let Step::Write(offset, bytes) = step else { continue };
        // The header is the only write smaller than a sector: the header is torn anywhere.
        let by = if bytes.len() <= SECTOR { 1 } else { SECTOR };
        for at in (by..bytes.len()).step_by(by) {
            for (others, kept) in [("kept", true), ("lost", false)] {
                let (begun, ended) = (&bytes[..at], &bytes[at..]);
                for (half, from, part) in [("beginning", 0, begun), ("end", at, ended)] {
                    let mut image = with(&|other| other != torn && kept);
                    put(&mut image, offset + from, part);
                    each(image, format!("of write {torn} the {half} at {at}, the others {others}"));
                }
            }
        }
    }
}

/// The fault in the data read after a cut; `None` without a fault.
fn wrong(life: &Life, epoch: &Epoch, found: &Result<Held, String>) -> Option<String> {
    // Unacknowledged data may be there or not.
    let may_be = life.held.iter().skip(epoch.acknowledged.saturating_sub(1)).take(2);
    match found {
        Err(refused) => Some(format!("refused: {refused}")),
        Ok(held) if may_be.clone().any(|expected| expected == held) => None,
        Ok(held) => Some(format!("read {held:?}")),
    }
}

#[test]
fn after_a_power_cut_at_any_moment_all_that_was_acknowledged_is_there_and_nothing_else() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let life = live(&runtime);
    // Every image, or a few where long tests do not run.
    let every = if runs_long_tests() { 1 } else { 47 };
    let (mut seen, mut tried, mut failed) = (0_usize, 0, Vec::new());
    // The first deeds of all make the database, under another name: see `disk::create`.
    for (number, epoch) in epochs(&life.steps).iter().enumerate().filter(|(_, epoch)| epoch.acknowledged > 0) {
        images(epoch, &mut |image, how| {
            seen += 1;
            if !seen.is_multiple_of(every) {
                return;
            }
            tried += 1;
            if let Some(wrong) = wrong(&life, epoch, &open(&runtime, image, Some(epoch.counted))) {
                failed.push(format!("sync {number}, {how}: {wrong}"));
            }
        });
    }
    println!("{tried} power cuts");
    assert!(seen > 1_000, "only {seen} cuts");
    assert!(failed.is_empty(), "{} of {tried}:\n{}", failed.len(), failed[..failed.len().min(5)].join("\n"));
}

#[test]
fn a_disk_that_says_synced_and_is_not_is_found_out() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut life = live(&runtime);
    // As if syncs did nothing: acknowledged data is lost with unacknowledged data.
    let last = life.steps.iter().rposition(|step| matches!(step, Step::Sync)).unwrap();
    let before = life.steps[..last].iter().rposition(|step| matches!(step, Step::Sync)).unwrap();
    life.steps.remove(before);
    let epochs = epochs(&life.steps);
    let epoch =
        Epoch { acknowledged: life.held.len(), counted: life.writes, ..epochs.into_iter().next_back().unwrap() };
    let found = open(&runtime, epoch.synced.clone(), Some(epoch.counted));
    let refused = wrong(&life, &epoch, &found).unwrap();
    assert!(refused.contains("writes before and holds"), "{refused}");
    let unwarned = open(&runtime, epoch.synced.clone(), None);
    assert!(wrong(&life, &epoch, &unwarned).unwrap().starts_with("read "), "without the count nothing was told");
}
