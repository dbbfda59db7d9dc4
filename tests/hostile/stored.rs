//! Entries, snapshots and journals with changed messages: fields that are missing, doubled, moved, nested and full of
//! odd numbers, which flipped bytes rarely produce. A value that was read is a valid value; a refusal names the place.
//! (`tests/wire` cuts, flips and mixes bytes.)

use allclear::wire::log;

use crate::hostile::dice::{Dice, rounds};
use crate::hostile::memory;
use crate::hostile::message::{change, parse, write};

/// The golden bytes of everything that was ever stored.
fn corpus() -> Vec<(&'static str, Vec<u8>)> {
    let kinds = [
        ("command", include_str!("../wire/golden/command.hex")),
        ("entry", include_str!("../wire/golden/entry.hex")),
        ("journal", include_str!("../wire/golden/journal.hex")),
        ("state", include_str!("../wire/golden/state.hex")),
    ];
    let bytes =
        |hex: &str| (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect();
    let of_kind = |(kind, lines): (&'static str, &'static str)| {
        lines.lines().map(move |line| (kind, bytes(line.rsplit_once(':').unwrap().1.trim())))
    };
    kinds.into_iter().flat_map(of_kind).collect()
}

/// Reads and stores the bytes: an error is the reason of a refusal; a value that was read is stored unchanged.
fn read(kind: &str, bytes: &[u8]) -> Result<(), String> {
    macro_rules! again {
        ($decode:path, $encode:path) => {{
            let read = $decode(bytes).map_err(|refused| refused.to_string())?;
            let stored = $encode(&read);
            assert_eq!($decode(&stored).as_ref(), Ok(&read), "{kind}");
            assert!(stored.len() <= 2 * bytes.len() + 64, "{kind}: {} bytes became {}", bytes.len(), stored.len());
            Ok(())
        }};
    }
    match kind {
        "command" => again!(log::decode_command, log::encode_command),
        "entry" => again!(log::decode_entry, log::encode_entry),
        "journal" => again!(log::decode_journal, log::encode_journal),
        _ => again!(log::decode_state, log::encode_state),
    }
}

#[test]
fn a_message_with_anything_in_it_is_a_value_or_refused_with_its_place() {
    let (corpus, mut dice) = (corpus(), Dice::of(4));
    let (rounds, mut taken, mut refused) = (rounds(8_000), 0, 0);
    for _ in 0..rounds {
        let (kind, bytes) = dice.one(&corpus);
        let other = parse(&dice.clone().one(&corpus).1, 0).filter(|fields| !fields.is_empty());
        let (Some(mut fields), Some(other)) = (parse(bytes, 0), other) else { continue };
        for _ in 0..=dice.below(2) {
            change(&mut dice, &mut fields, &other);
        }
        match read(kind, &write(&fields)) {
            Ok(()) => taken += 1,
            Err(told) => {
                refused += 1;
                assert!(
                    told.starts_with(if *kind == "state" { "snapshot" } else { kind }) && told.len() < 1_000,
                    "{told}"
                );
            }
        }
    }
    println!("{taken} were read, {refused} refused");
    assert!(taken.min(refused) > rounds / 16, "{taken} were read, {refused} refused");
    memory::is_bounded();
}

#[test]
fn the_corpus_is_taken_apart_and_put_together_again() {
    for (kind, bytes) in corpus() {
        assert_eq!(parse(&bytes, 0).map(|fields| write(&fields)), Some(bytes), "{kind}");
    }
}
