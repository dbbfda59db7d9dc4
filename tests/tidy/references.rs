//! Paths named in a document.

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

#[test]
fn a_path_that_does_not_exist_is_found() {
    let document = "`core/apply.rs` has `apply`, `slots.rs`, `plan/`, `fn a() -> b/c` and `core/gone.rs`";
    assert_eq!(missing_files(document, |path| path == "core/apply.rs"), ["core/gone.rs"]);
}
