//! Words: file heads, names, and paths or hosts of foreign machines.

use std::collections::BTreeSet;

use super::source::Source;

pub(super) fn at_the_head(source: &Source) -> Vec<(usize, String)> {
    let opens = source.text.lines().next().is_some_and(|line| line.starts_with("//! ") && line.len() > 4);
    if opens { Vec::new() } else { vec![(1, "open the file with `//!` and what it is for".to_owned())] }
}

/// Names without a specific meaning.
pub(super) fn in_the_name(source: &Source) -> Vec<(usize, String)> {
    const EMPTY: &[&str] = &["util", "helper", "manager", "info", "data", "common", "misc"];
    let parts = source.path.trim_end_matches(".rs").split(['/', '_']);
    let empty = |part: &&str| EMPTY.contains(part) || EMPTY.contains(&part.trim_end_matches('s'));
    parts.filter(empty).map(|part| (1, format!("{part:?} says nothing: name what is in it"))).collect()
}

/// Closures with the name of a free function of their file: a reader would find the wrong function.
pub(super) fn of_closures(source: &Source) -> Vec<(usize, String)> {
    let starts = ["fn ", "async fn ", "const fn "];
    let of_function = |line: &'_ str| {
        let item = line.strip_prefix("pub ").unwrap_or(line);
        let item = item.strip_prefix("pub(crate) ").or_else(|| item.strip_prefix("pub(super) ")).unwrap_or(item);
        let rest = starts.iter().find_map(|start| item.strip_prefix(start))?;
        rest.split(['(', '<']).next().map(str::to_owned)
    };
    let functions: BTreeSet<String> = source.text.lines().filter_map(of_function).collect();
    let of_closure = |line: &str| {
        let (name, value) = line.trim_start().strip_prefix("let ")?.split_once(" = ")?;
        let value = value.strip_prefix("async ").unwrap_or(value);
        value.strip_prefix("move ").unwrap_or(value).starts_with('|').then(|| name.to_owned())
    };
    let closures = source.text.lines().enumerate().filter_map(|(at, line)| Some((at + 1, of_closure(line)?)));
    let shadowing = closures.filter(|(_, name)| functions.contains(name));
    shadowing.map(|(at, name)| (at, format!("the closure `{name}` hides the function of this name"))).collect()
}

/// Paths of the machine on which a file was written, and hosts for package clients only.
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
fn a_closure_that_hides_a_function_is_found() {
    let text = "fn due() {}\nfn steps() {\n    let due = move |step| step;\n    let other = |step| due(step);\n}\n";
    assert_eq!(of_closures(&Source::new("src/a.rs", text)).len(), 1);
}

#[test]
fn a_path_of_one_machine_is_found() {
    let text = ["fine", concat!("see /wo", "rk/notes"), "fine"].join("\n");
    assert_eq!(of_elsewhere(&Source::new("README.md", &text))[0].0, 2);
}
