//! The generated code belongs to the `.proto` files of the same commit. `.ci/run` generates the code again; this test
//! needs no compiler of `.proto` files.

use std::fmt::Write as _;
use std::path::Path;

use super::ROOT;
use super::source;

const COMMAND: &str = "cargo run --package allclear-codegen";

/// The lines of `sha256sum` for the files of `proto`.
fn digests(sources: &[source::Source]) -> Vec<String> {
    let hex = |bytes: &[u8]| {
        bytes.iter().fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").unwrap();
            text
        })
    };
    let digest = |text: &str| hex(ring::digest::digest(&ring::digest::SHA256, text.as_bytes()).as_ref());
    sources.iter().map(|source| format!("{}  {}", digest(&source.text), source.path)).collect()
}

#[test]
fn the_generated_code_belongs_to_the_protos() {
    let sources = source::below(Path::new(ROOT), &["proto"], &["proto", "json"]);
    let recorded = std::fs::read_to_string(Path::new(ROOT).join("src/wire/generated/sources.sha256")).unwrap();
    let recorded: Vec<_> = recorded.lines().collect();
    assert_eq!(recorded, digests(&sources), "proto has changed; run `{COMMAND}`");

    let changed = source::Source::new(&sources[0].path, &format!("{}\n", sources[0].text));
    assert!(!recorded.contains(&digests(&[changed])[0].as_str()));
}
