//! Claim: the code keeps its rules: the allowed imports, the places where clock and environment are read, the lengths
//! of files and functions, the entries at the top, and the origin of the generated code. Each rule works on texts and is
//! shown to fail on a bad text.

mod dependency_rules;
mod generated;
mod lengths;
mod plain;
mod reads;
mod references;
mod source;
mod top;
mod words;

use std::path::Path;

use source::Source;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Applies a rule: the faults of one file, each with the line and the repair.
fn check(sources: &[Source], rule: impl Fn(&Source) -> Vec<(usize, String)>) {
    assert!(!sources.is_empty(), "nothing to look at");
    let told = |source: &Source| {
        let path = source.path.clone();
        rule(source).into_iter().map(move |(line, finding)| format!("{path}:{line}: {finding}"))
    };
    let findings: Vec<_> = sources.iter().flat_map(told).collect();
    assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
}

/// Every Rust file.
fn rust() -> Vec<Source> {
    source::below(Path::new(ROOT), &["src", "tests", "proto", "deploy"], &["rs"])
}

/// Every Rust file that is part of the program.
fn program() -> Vec<Source> {
    rust().into_iter().filter(|source| source.path.starts_with("src/") && !source.is_test()).collect()
}

#[test]
fn modules_import_only_what_they_may() {
    check(&program(), dependency_rules::between_modules);
}

#[test]
fn the_core_imports_in_one_direction() {
    check(&program(), dependency_rules::within_core);
}

#[test]
fn foreign_crates_are_used_where_they_may_be() {
    check(&program(), dependency_rules::to_foreign_crates);
}

#[test]
fn the_architecture_names_files_that_exist() {
    let root = Path::new(ROOT);
    let document = std::fs::read_to_string(root.join("src/ARCHITECTURE.md")).unwrap();
    let exists = |path: &str| root.join("src").join(path).exists() || root.join(path).exists();
    assert_eq!(references::missing_files(&document, exists), Vec::<&str>::new());
    assert!(references::missing_files(&document, |_| false).contains(&"core/apply/mod.rs"));
}

/// Every document of the repository.
fn documents() -> Vec<Source> {
    source::below(Path::new(ROOT), &["README.md", ".github", "src", "tests", "proto", "deploy"], &["md"])
}

#[test]
fn references_name_documents_and_sections_that_exist() {
    let (root, documents) = (Path::new(ROOT), documents());
    let code = source::below(root, &["src", "tests", "proto", "deploy"], &["rs", "proto", "js", "py", "toml"]);
    check(&code, |source| references::unresolved(source, &documents));
    check(&documents, |source| references::unresolved(source, &documents));
}

#[test]
fn links_lead_to_files_and_headings_that_exist() {
    let documents = documents();
    let exists = |path: &str| Path::new(ROOT).join(path).exists();
    check(&documents, |document| references::dead_links(document, &documents, exists));
}

#[test]
fn the_clock_is_read_in_its_module() {
    check(&program(), reads::of_the_clock);
}

#[test]
fn the_environment_is_read_in_its_module() {
    check(&program(), reads::of_the_environment);
}

#[test]
fn files_are_short() {
    check(&rust(), lengths::of_files);
    for source in rust().iter().filter(|source| lengths::asks_for_a_split(source)) {
        println!("{} has {} lines: look for a split", source.path, source.text.lines().count());
    }
}

#[test]
fn functions_are_short() {
    check(&rust(), lengths::of_functions);
}

#[test]
fn every_file_opens_with_what_it_is_for() {
    check(&rust(), words::at_the_head);
}

#[test]
fn file_names_say_something() {
    check(&rust(), words::in_the_name);
}

#[test]
fn closures_hide_no_function() {
    check(&rust(), words::of_closures);
}

#[test]
fn comments_and_documents_name_their_subjects() {
    let texts = source::every_text(Path::new(ROOT));
    let figure = |folders: &[&str]| {
        let wanted = texts.iter().filter(|source| folders.iter().any(|folder| source.path.starts_with(folder)));
        plain::Share::sum(wanted).figure()
    };
    for (folders, limit) in [
        (&[""][..], plain::OF_ALL),
        (&["src/"], plain::OF_ALL),
        (&["README.md", "deploy/docs/"], plain::OF_USERS),
        // comments of arguments are the help texts
        (&["src/cli/"], plain::OF_USERS),
    ] {
        let found = figure(folders);
        println!("{folders:?}: {found} pronouns and free relatives in 1,000 words");
        assert!(found > 0 && found <= limit, "{folders:?}: {found} in 1,000 words, more than {limit}");
    }
    check(&texts, plain::of_a_file);
}

#[test]
fn texts_name_no_machine_and_no_registry() {
    check(&source::every_text(Path::new(ROOT)), words::of_elsewhere);
}

#[test]
fn only_six_entries_and_the_lock_are_visible_at_the_top() {
    let entries = std::fs::read_dir(ROOT).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(top::strangers(entries), Vec::<String>::new());
}

#[test]
fn every_crate_comes_from_the_one_registry() {
    let lock = std::fs::read_to_string(Path::new(ROOT).join("Cargo.lock")).unwrap();
    assert_eq!(top::strange_sources(&lock), Vec::<&str>::new());
}

/// The log messages in the `grep` commands of a page: the quoted words.
fn searched(page: &str) -> Vec<&str> {
    let commands = page.split("| grep ").skip(1).filter_map(|rest| rest.split('`').next());
    let quoted = commands.flat_map(|command| command.split('\'').skip(1).step_by(2));
    quoted.map(|words| words.trim_start_matches("\"message\":").trim_matches('"')).collect()
}

/// The searched words without a matching log message.
fn not_logged<'a>(page: &'a str, sources: &[String]) -> Vec<&'a str> {
    let words = searched(page).into_iter();
    words.filter(|words| !sources.iter().any(|text| text.contains("tracing::") && text.contains(words))).collect()
}

#[test]
fn the_pages_for_operators_search_for_messages_that_are_logged() {
    let read_page = |name: &str| std::fs::read_to_string(Path::new(ROOT).join("deploy/docs").join(name)).unwrap();
    let pages = ["alerts.md", "troubleshoot.md"].map(read_page).concat();
    let read = |source: &Source| std::fs::read_to_string(Path::new(ROOT).join(&source.path)).unwrap();
    let sources: Vec<String> = program().iter().map(read).collect();
    assert!(searched(&pages).len() >= 5, "the commands are not found");
    assert_eq!(not_logged(&pages, &sources), Vec::<&str>::new());
    assert_eq!(not_logged("`journalctl | grep 'standing changed'`", &sources), ["standing changed"]);
}
