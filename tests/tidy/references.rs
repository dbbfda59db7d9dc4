//! References in comments and documents: paths, sections of documents, and links.

use super::source::Source;

/// The files in backticks that do not exist. A file has a slash and a dot; a name without a slash belongs to the path
/// before the name.
pub(super) fn missing_files(document: &str, exists: impl Fn(&str) -> bool) -> Vec<&str> {
    let quoted = document.split('`').skip(1).step_by(2);
    let is_path = |text: &&str| {
        let is_plain = text.chars().all(|letter| letter.is_ascii_alphanumeric() || "_-./".contains(letter));
        is_plain && text.contains('/') && text.contains('.')
    };
    quoted.filter(is_path).filter(|path| !exists(path)).collect()
}

/// References to documents that do not exist, and to sections that the document does not have. In code only comments
/// count.
pub(super) fn unresolved(source: &Source, documents: &[Source]) -> Vec<(usize, String)> {
    let prose = prose(source);
    let ends = prose.match_indices(".md").map(|(at, suffix)| at + suffix.len());
    let named = ends.filter_map(|end| Some((end, name_before(&prose, end)?)));
    let fault = |(end, name): (usize, &str)| {
        let Some(document) = document_named(name, source, documents) else {
            return Some((line_of(&prose, end), format!("`{name}` is no document, or several: name the path")));
        };
        let number = number_after(&prose[end..]).filter(|number| !has_section(document, number))?;
        Some((line_of(&prose, end), format!("`{name}` has no section {number}")))
    };
    named.filter_map(fault).collect()
}

/// Relative links of a document to files or headings that do not exist.
pub(super) fn dead_links(
    document: &Source,
    documents: &[Source],
    exists: impl Fn(&str) -> bool,
) -> Vec<(usize, String)> {
    let prose = prose(document);
    let links = prose.match_indices("](").filter_map(|(at, _)| Some((at, prose[at + 2..].split_once(')')?.0)));
    let relative = links.filter(|(_, link)| !link.contains("://") && !link.starts_with("mailto:"));
    let is_dead = |link: &str| {
        let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
        let path = if path.is_empty() { document.path.clone() } else { path_from(document, path) };
        let target = documents.iter().find(|other| other.path == path).filter(|_| !anchor.is_empty());
        target.map_or(!exists(&path), |target| !anchors(target).iter().any(|known| known == anchor))
    };
    let dead = relative.filter(|(at, link)| !is_in_backticks(&prose, *at) && is_dead(link));
    dead.map(|(at, link)| (line_of(&prose, at), format!("the link to {link:?} has no target"))).collect()
}

/// The comments of code, or a document without its code blocks; other lines are empty.
fn prose(source: &Source) -> String {
    let mark = match source.path.rsplit('.').next() {
        Some("md") => "",
        Some("rs" | "proto" | "js") => "//",
        _ => "#",
    };
    let mut is_code = false;
    let lines = source.text.lines().map(|line| {
        let line = line.trim_start();
        let is_fence = mark.is_empty() && line.starts_with("```");
        is_code ^= is_fence;
        let text = line.strip_prefix(mark).filter(|_| !is_code && !is_fence);
        text.map_or("", |text| text.trim_start_matches(['/', '!', ' ']))
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn line_of(prose: &str, at: usize) -> usize {
    prose[..at].matches('\n').count() + 1
}

fn is_in_backticks(prose: &str, at: usize) -> bool {
    let line = prose[..at].rsplit('\n').next().unwrap_or_default();
    line.matches('`').count() % 2 == 1
}

/// The path that ends at `end`; `None` for a pattern, an absolute path, an address, or a part of a longer word.
fn name_before(prose: &str, end: usize) -> Option<&str> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || "_-./".contains(letter);
    let (before, after) = prose.split_at(end);
    let name = before.rsplit(|letter| !is_part(letter)).next()?;
    let is_whole = !after.starts_with(|letter: char| letter.is_alphanumeric() || "_-/".contains(letter));
    (is_whole && name != ".md" && !name.starts_with('/')).then_some(name)
}

/// The document beside the source, at the path from the root, or else the only document whose path ends with the name.
fn document_named<'a>(name: &str, source: &Source, documents: &'a [Source]) -> Option<&'a Source> {
    let at = |path: &str| documents.iter().find(|document| document.path == path);
    let ending = format!("/{name}");
    let mut similar = documents.iter().filter(|document| document.path.ends_with(&ending));
    at(&path_from(source, name)).or_else(|| at(name)).or_else(|| similar.next().filter(|_| similar.next().is_none()))
}

/// The path, from the root, of a path relative to the folder of the source.
fn path_from(source: &Source, path: &str) -> String {
    let folder = source.path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let mut steps = Vec::new();
    for step in folder.split('/').chain(path.split('/')) {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop();
            }
            _ => steps.push(step),
        }
    }
    steps.join("/")
}

/// The number of a section behind a name: `6` or `6.3`.
fn number_after(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix('`').unwrap_or(rest).strip_prefix([' ', '\n'])?;
    let end = rest.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(rest.len());
    Some(rest[..end].trim_end_matches('.')).filter(|number| !number.is_empty())
}

/// A heading or an item of the document begins with the number.
fn has_section(document: &Source, number: &str) -> bool {
    let marks = ['#', '-', '*'];
    let marked = document.text.lines().filter(|line| line.starts_with(marks));
    let mut behind = marked
        .filter_map(|line| line.trim_start_matches(marks).trim_start().trim_start_matches('*').strip_prefix(number));
    behind.any(|rest| !rest.trim_start_matches('.').starts_with(|letter: char| letter.is_ascii_digit()))
}

/// The anchors of the headings, by GitHub's rule: letters in lower case, hyphens for spaces, no punctuation, and a
/// number behind a repeated anchor.
fn anchors(document: &Source) -> Vec<String> {
    let prose = prose(document);
    let headings = prose.lines().filter(|line| line.starts_with('#'));
    let headings = headings.filter_map(|line| line.trim_start_matches('#').strip_prefix(' '));
    let mut plain: Vec<String> = Vec::new();
    let mut found = Vec::new();
    for heading in headings {
        let kept = heading.trim().chars().filter(|letter| letter.is_alphanumeric() || "-_ ".contains(*letter));
        let anchor: String = kept.flat_map(char::to_lowercase).map(|it| if it == ' ' { '-' } else { it }).collect();
        let earlier = plain.iter().filter(|known| **known == anchor).count();
        found.push(if earlier == 0 { anchor.clone() } else { format!("{anchor}-{earlier}") });
        plain.push(anchor);
    }
    found
}

#[test]
fn a_path_that_does_not_exist_is_found() {
    let document = "`core/apply.rs` has `apply`, `slots.rs`, `plan/`, `fn a() -> b/c` and `core/gone.rs`";
    assert_eq!(missing_files(document, |path| path == "core/apply.rs"), ["core/gone.rs"]);
}

#[test]
fn a_reference_without_a_document_or_a_section_is_found() {
    let spec = "# Rules\n\n## 6. Approval\n\n- **6.3** A claim, 7.\n\n7 is no heading.\n";
    let documents = [("src/SPEC.md", spec), ("src/a/README.md", "# A\n"), ("src/b/README.md", "# B\n")];
    let documents = documents.map(|(path, text)| Source::new(path, text));
    let faults = |path: &str, text: &str| unresolved(&Source::new(path, text), &documents);
    let good = "//! `SPEC.md` 6, SPEC.md 6.3. `src/SPEC.md`, README.md, ../b/README.md, *.md, https://a.example/c.md\n";
    assert_eq!(faults("src/a/x.rs", good), []);
    let bad = "/// Rules (`SPEC.md`\n/// 6.4).\nlet text = \"lost.md\"; // `SPEC.md` 9\n    // gone.md, `SPEC.md` 7\n";
    let expected = [
        (1, "`SPEC.md` has no section 6.4"),
        (4, "`gone.md` is no document, or several: name the path"),
        (4, "`SPEC.md` has no section 7"),
    ];
    assert_eq!(faults("src/c/x.rs", bad), expected.map(|(line, fault)| (line, fault.to_owned())));
    assert_eq!(faults("src/c/x.py", "# README.md\n").len(), 1, "there are two");
}

#[test]
fn a_link_without_a_target_is_found() {
    let guide = "# Guide\n\n## Set up: a `VM`\n\n## Again\n\n## Again\n\n[a](#set-up-a-vm) [b](../b.md#again-1)\n\
                 [c](b.md) `[d](d)` [e](https://a.example/e)\n```\n[f](f)\n# Block\n```\n[g](#set-up) [h](../b.md#block)\n";
    let documents = [("docs/a.md", guide), ("b.md", "# Again\n\n## Again\n")];
    let documents = documents.map(|(path, text)| Source::new(path, text));
    let exists = |path: &str| documents.iter().any(|document| document.path == path);
    let expected = [(10, "b.md"), (15, "#set-up"), (15, "../b.md#block")];
    let expected = expected.map(|(line, link)| (line, format!("the link to {link:?} has no target")));
    assert_eq!(dead_links(&documents[0], &documents, exists), expected);
}
