//! Damage to data on the disk: a flipped bit, a truncated file, a value in another place. The disk is read unchanged,
//! or rejected with a message and a remedy. The disk is never read as something else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use redb::ReadableTable as _;
use tokio::runtime::Runtime;

use super::disk::Disk;
use super::recorded_tests::{Held, Image, Life, live, open, read, runs_long_tests};
use super::tables::{LOG, META};

const PAGE: usize = 4096;
/// The database's own header: with `CI` every bit of the header is tried, else every third.
const HEADER: usize = 320;
const ADVICE: &str = "if the disk is damaged, remove the directory and add this replica as a new replica";

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// The fault in the reaction to damage; `None` without a fault.
fn wrong(expected: &Held, found: std::thread::Result<Result<Held, String>>) -> Option<String> {
    match found {
        Err(_) => Some("panicked".into()),
        Ok(Ok(held)) if held == *expected => None,
        Ok(Ok(held)) => Some(format!("read {held:?}")),
        Ok(Err(told)) if told.starts_with("cannot read a backend: ") && told.ends_with(ADVICE) => None,
        Ok(Err(told)) => Some(format!("told only {told:?}")),
    }
}

fn tried(runtime: &Runtime, life: &Life, image: Vec<u8>, counted: Option<u64>) -> Option<String> {
    let expected = life.held.last().unwrap();
    wrong(expected, catch_unwind(AssertUnwindSafe(|| open(runtime, image, counted))))
}

/// Bits of each byte of the header, and of the written part of each page one bit in `every` bytes.
fn bits(image: &[u8], every: usize) -> Vec<usize> {
    let pages =
        (0..image.len() / PAGE).filter(|page| image[page * PAGE..(page + 1) * PAGE].iter().any(|byte| *byte != 0));
    let on_pages = pages.flat_map(|page| (page * PAGE..(page + 1) * PAGE).step_by(every));
    let somewhere = |(number, at): (usize, usize)| {
        let at = at + number * 7 % every;
        (at < image.len() && at >= HEADER).then_some(at * 8 + number % 8)
    };
    let of_header = (0..HEADER * 8).step_by(if runs_long_tests() { 1 } else { 3 });
    of_header.chain(on_pages.enumerate().filter_map(somewhere)).collect()
}

fn flipped(image: &[u8], bit: usize) -> Vec<u8> {
    let mut image = image.to_vec();
    image[bit / 8] ^= 1 << (bit % 8);
    image
}

/// The disk of a replica that was killed or closed.
fn flip_bits(of: fn(&Life) -> &Vec<u8>, every: usize) {
    let runtime = runtime();
    let life = live(&runtime);
    let (image, mut failed, mut count) = (of(&life), Vec::new(), 0);
    for bit in bits(image, every) {
        count += 1;
        if let Some(wrong) = tried(&runtime, &life, flipped(image, bit), Some(life.writes)) {
            failed.push(format!("byte {} bit {}: {wrong:.300}", bit / 8, bit % 8));
        }
    }
    println!("{count} flipped bits");
    assert!(failed.is_empty(), "{} of {count}:\n{}", failed.len(), failed[..failed.len().min(20)].join("\n"));
}

fn some_bytes() -> usize {
    if runs_long_tests() { 127 } else { 4_093 }
}

#[test]
fn a_flipped_bit_is_refused_or_makes_no_difference_after_a_kill() {
    flip_bits(|life| &life.killed, some_bytes());
}

#[test]
fn a_flipped_bit_is_refused_or_makes_no_difference_after_a_stop() {
    flip_bits(|life| &life.closed, some_bytes());
}

#[test]
#[ignore = "takes many minutes"]
fn a_flipped_bit_in_any_byte_is_refused_or_makes_no_difference() {
    flip_bits(|life| &life.killed, 1);
    flip_bits(|life| &life.closed, 1);
}

#[test]
fn without_the_count_of_writes_a_flipped_bit_would_take_back_what_was_acknowledged() {
    let runtime = runtime();
    let life = live(&runtime);
    let is_older =
        |bit| open(&runtime, flipped(&life.killed, bit), None).is_ok_and(|held| held != *life.held.last().unwrap());
    let bit = (0..HEADER * 8).find(|bit| is_older(*bit));
    let refused = open(&runtime, flipped(&life.killed, bit.expect("nothing was taken back")), Some(life.writes));
    let refused = refused.unwrap_err();
    assert!(refused.contains("writes before and holds"), "{refused}");
}

#[test]
fn a_file_that_was_cut_off_is_refused() {
    let runtime = runtime();
    let life = live(&runtime);
    for (how, image) in [("killed", &life.killed), ("closed", &life.closed)] {
        let last = image.len() - PAGE;
        let ends = (0..HEADER).chain((HEADER..last).step_by(PAGE / 2 - 1)).chain((last..image.len()).step_by(7));
        for end in ends {
            let wrong = if end == 0 { None } else { tried(&runtime, &life, image[..end].to_vec(), Some(life.writes)) };
            assert_eq!(wrong, None, "{how}, cut off at {end}");
        }
    }
}

/// Changes stored data the way the database itself does, so that its own checksums are right. Returns the errors of a
/// running replica and of a starting replica.
fn meddled(meddle: impl FnOnce(&redb::WriteTransaction)) -> [String; 2] {
    let runtime = runtime();
    let image = Image::of(live(&runtime).closed);
    let disk = Disk::on(image.clone(), None).unwrap();
    disk.write(|transaction| {
        meddle(transaction);
        Ok(())
    })
    .unwrap();
    let while_it_runs = read(&runtime, &disk).map_err(|error| error.to_string());
    drop(disk);
    let told =
        [while_it_runs, open(&runtime, image.bytes(), None)].map(|found| found.map(|_| ()).err().unwrap_or_default());
    assert!(told.iter().all(|told| told.is_empty() || told.ends_with(ADVICE)), "{told:?}");
    told
}

fn entry(transaction: &redb::WriteTransaction, index: u64) -> Vec<u8> {
    transaction.open_table(LOG).unwrap().get(index).unwrap().unwrap().value().to_vec()
}

#[test]
fn a_value_that_changed_is_named_and_refused() {
    let told = meddled(|transaction| {
        let mut value = entry(transaction, 8);
        value[9] ^= 1;
        transaction.open_table(LOG).unwrap().insert(8, value.as_slice()).unwrap();
    });
    assert!(told.iter().all(|told| told.contains("log entry 8: it is not what was written there")), "{told:?}");
    let told = meddled(|transaction| {
        let mut table = transaction.open_table(META).unwrap();
        let mut value = table.get("vote").unwrap().unwrap().value().to_vec();
        value[1] ^= 4;
        table.insert("vote", value.as_slice()).unwrap();
    });
    assert!(told.iter().all(|told| told.contains("vote: it is not what was written there")), "{told:?}");
}

#[test]
fn a_value_in_the_place_of_another_one_is_refused() {
    let told = meddled(|transaction| {
        let value = entry(transaction, 9);
        transaction.open_table(LOG).unwrap().insert(8, value.as_slice()).unwrap();
    });
    assert!(told.iter().all(|told| told.contains("log entry 8: it is not what was written there")), "{told:?}");
}

#[test]
fn a_hole_in_the_log_is_refused_at_the_start() {
    let [_, told] = meddled(|transaction| {
        transaction.open_table(LOG).unwrap().remove(8).unwrap();
    });
    assert!(told.contains("the log continues at entry 9 instead of entry 8"), "{told}");
    let [_, told] = meddled(|transaction| {
        transaction.open_table(META).unwrap().remove("snapshot").unwrap();
    });
    assert!(told.contains("the log was shortened for a snapshot, and the snapshot is missing"), "{told}");
}

#[test]
fn what_was_stored_without_seals_is_read() {
    let told = meddled(|transaction| {
        let sealed = entry(transaction, 8);
        let mut table = transaction.open_table(LOG).unwrap();
        table.insert(8, &sealed[..sealed.len() - 9]).unwrap();
    });
    assert_eq!(told, ["", ""]);
}
