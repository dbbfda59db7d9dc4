//! Words: heads, names, and what belongs to somebody else's machine.

use super::source::Source;

pub(super) fn at_the_head(source: &Source) -> Vec<(usize, String)> {
    let opens = source.text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 4);
    if opens { Vec::new() } else { vec![(1, "open the file with `//!` and what it is for".to_owned())] }
}

/// Names under which everything fits.
pub(super) fn in_the_name(source: &Source) -> Vec<(usize, String)> {
    const EMPTY: &[&str] = &["util", "helper", "manager", "info", "data", "common", "misc"];
    let parts = source.path.trim_end_matches(".rs").split(['/', '_']);
    let empty = |part: &&str| EMPTY.contains(part) || EMPTY.contains(&part.trim_end_matches('s'));
    parts.filter(empty).map(|part| (1, format!("{part:?} says nothing: name what is in it"))).collect()
}

/// Paths of the machine it was written on, and hosts that only a package client talks to.
pub(super) fn of_elsewhere(source: &Source) -> Vec<(usize, String)> {
    // in two parts, so that this file does not contain them
    const ELSEWHERE: &[&str] = &[
        concat!("/wo", "rk/"),
        concat!("/ro", "ot/"),
        concat!("index.crates", ".io"),
        concat!("static.crates", ".io"),
        concat!("pypi", ".org"),
        concat!("npmjs", ".org"),
        concat!("proxy.golang", ".org"),
    ];
    let found = |(at, line): (usize, &str)| {
        let word = ELSEWHERE.iter().find(|word| line.contains(*word))?;
        Some((at + 1, format!("{word:?} is of one machine or registry: leave it out")))
    };
    source.text.lines().enumerate().filter_map(found).collect()
}

#[test]
fn a_file_without_a_head_is_found() {
    for text in ["", "use std::fmt;\n", "//!\n", "\n//! late\n", "/// about something else\n"] {
        assert_eq!(at_the_head(&Source::new("src/a.rs", text)).len(), 1, "{text:?}");
    }
    assert_eq!(at_the_head(&Source::new("src/a.rs", "//! Says what it is for.\n")), []);
}

#[test]
fn a_name_for_everything_is_found() {
    for path in ["src/a/utils.rs", "src/helper/mod.rs", "tests/vm_data.rs"] {
        assert_eq!(in_the_name(&Source::new(path, "")).len(), 1, "{path}");
    }
    assert_eq!(in_the_name(&Source::new("src/metadata/document.rs", "")), []);
}

#[test]
fn a_path_of_one_machine_is_found() {
    let text = ["fine", concat!("see /wo", "rk/notes"), "fine"].join("\n");
    assert_eq!(of_elsewhere(&Source::new("README.md", &text))[0].0, 2);
}
