//! The bytes of every sample, as written by the first version with the sample: `golden/KIND.hex`, a name and the bytes
//! in each line. `ALLCLEAR_BLESS=1` adds lines for new samples and never changes a line: bytes that were once written
//! are on a disk of some user.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use crate::wire::samples::{commands, samples};

const KINDS: [&str; 5] = ["command", "entry", "journal", "state", "verdict"];
const ENTRY_PROTO: &str = include_str!("../../proto/allclear/log/v1/entry.proto");

#[test]
fn every_sample_is_written_and_read_as_its_golden_bytes() {
    let samples = samples();
    if std::env::var_os("ALLCLEAR_BLESS").is_some() {
        for (name, record) in &samples {
            if !golden().contains_key(name) {
                add(name, &record.encode());
            }
        }
    }
    let mut golden = golden();
    for (name, record) in &samples {
        let bytes = golden.remove(name).unwrap_or_else(|| panic!("{name} has no golden bytes; see ALLCLEAR_BLESS"));
        assert_eq!(record.decode(&bytes).as_ref(), Ok(record), "{name}");
        assert_eq!(hex(&record.encode()), hex(&bytes), "{name}");
        let decoded = record.decode(&bytes).unwrap();
        // Names that compare as equal may be spelled differently; the bytes differ then.
        assert_eq!(hex(&decoded.encode()), hex(&bytes), "{name}");
    }
    assert!(golden.is_empty(), "no sample is left for {:?}", golden.keys());
}

#[test]
fn every_command_of_the_proto_has_golden_bytes() {
    let declared: BTreeSet<&str> = block("message Command {\n  oneof variant {").map(|line| line[1]).collect();
    let sampled: BTreeSet<&str> = commands().iter().map(|(_, command)| command.as_str()).collect();
    assert_eq!(declared, sampled);
    assert!(!declared.is_empty());
}

#[test]
fn every_reason_for_ignoring_of_the_proto_has_golden_bytes() {
    let declared = block("enum Rejection {").map(|line| line[0].trim_start_matches("REJECTION_").to_ascii_lowercase());
    let golden = golden();
    let missing: Vec<String> = declared.filter(|word| !golden.contains_key(&format!("verdict {word}"))).collect();
    assert_eq!(missing, ["unspecified"]);
}

/// The words of each declaration in a block of the proto.
fn block(opening: &str) -> impl Iterator<Item = Vec<&'static str>> {
    let (_, rest) = ENTRY_PROTO.split_once(opening).unwrap();
    let (block, _) = rest.split_once('}').unwrap();
    block.lines().map(|line| line.split_whitespace().collect()).filter(|words: &Vec<&str>| words.contains(&"="))
}

pub(crate) fn golden() -> BTreeMap<String, Vec<u8>> {
    let lines = KINDS.map(|kind| std::fs::read_to_string(path(kind)).unwrap_or_default()).concat();
    let mut golden = BTreeMap::new();
    for line in lines.lines() {
        let (name, hex) = line.split_once(':').unwrap();
        let twice = golden.insert(name.to_owned(), bytes(hex.trim())).is_some();
        assert!(!twice, "{name} has two lines");
    }
    golden
}

fn add(name: &str, bytes: &[u8]) {
    let path = path(name.split(' ').next().unwrap());
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    writeln!(file, "{name}: {}", hex(bytes)).unwrap();
}

fn path(kind: &str) -> PathBuf {
    PathBuf::from(format!("{}/tests/wire/golden/{kind}.hex", env!("CARGO_MANIFEST_DIR")))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

fn bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2));
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
