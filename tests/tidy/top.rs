//! Entries at the top of the repository, and the sources of crates.

/// Unexpected visible entries; the build's own output is expected.
pub(super) fn strangers(entries: impl Iterator<Item = String>) -> Vec<String> {
    const WELCOME: &[&str] = &[
        "Cargo.toml",
        "Cargo.lock",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "README.md",
        "deploy",
        "proto",
        "src",
        "target",
        "tests",
    ];
    entries.filter(|entry| !entry.starts_with('.') && !WELCOME.contains(&entry.as_str())).collect()
}

pub(super) fn strange_sources(lock: &str) -> Vec<&str> {
    const REGISTRY: &str = "\"registry+https://github.com/rust-lang/crates.io-index\"";
    lock.lines().filter_map(|line| line.strip_prefix("source = ")).filter(|source| *source != REGISTRY).collect()
}

#[test]
fn a_stranger_at_the_top_is_found() {
    let entries = ["src", ".ci", "notes", "LICENSE"].map(str::to_owned);
    assert_eq!(strangers(entries.into_iter()), ["notes", "LICENSE"]);
}

#[test]
fn a_crate_from_elsewhere_is_found() {
    assert_eq!(
        strange_sources("name = \"a\"\nsource = \"git+https://example.org/a\"\n"),
        ["\"git+https://example.org/a\""]
    );
}
