//! The documents and the examples of the Debian package lead only to files that exist after the installation.

use std::path::{Path, PathBuf};

use super::package::tree;
use super::{has, shipped};

/// Every Markdown file below the folder.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| if path.is_dir() { documents(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

fn without_code_blocks(text: &str) -> String {
    text.split("\n```").step_by(2).collect()
}

/// The targets of the relative links.
fn links(text: &str) -> Vec<String> {
    let prose: String = without_code_blocks(text).split('`').step_by(2).collect();
    let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    targets.filter(|target| !target.contains("://")).map(str::to_owned).collect()
}

/// The relative links in the documents below the folder that lead to no file of the tree.
fn broken_links(tree: &Path, folder: &Path) -> Vec<String> {
    let tree = tree.canonicalize().unwrap();
    let text = |path: &Path| std::fs::read_to_string(path).unwrap();
    let mut broken = Vec::new();
    for document in documents(folder) {
        for link in links(&text(&document)) {
            let file = link.split('#').next().unwrap_or_default();
            let target = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            if !target.canonicalize().is_ok_and(|target| target.starts_with(&tree)) {
                broken.push(format!("{}: {link}", document.display()));
            }
        }
    }
    broken
}

#[test]
fn the_documents_of_the_package_link_only_inside_it() {
    if !has("dpkg-deb") || !has("strip") {
        return;
    }
    let tree = tree();
    let installed = tree.join("usr/share/doc/allclear");
    assert!(documents(&installed).len() > 10, "{:?}", documents(&installed));
    assert_eq!(broken_links(tree, &installed), Vec::<String>::new());
}

#[test]
fn a_link_without_a_target_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let text = "[a](#b) [c](d.md) [e](http://f) `[g](h)`\n```sh\n# [i](j)\n```\n[k](../l)\n";
    std::fs::write(folder.path().join("a.md"), text).unwrap();
    let broken = broken_links(folder.path(), folder.path());
    let found: Vec<&str> = broken.iter().map(|broken| broken.split_once(": ").unwrap().1).collect();
    assert_eq!(found, ["d.md", "../l"]);
}

/// The absolute paths among the values of a configuration.
fn paths(value: &toml::Value) -> Vec<String> {
    match value {
        toml::Value::String(text) if text.starts_with('/') => vec![text.clone()],
        toml::Value::Array(values) => values.iter().flat_map(paths).collect(),
        toml::Value::Table(table) => table.values().flat_map(paths).collect(),
        _ => Vec::new(),
    }
}

/// A program of a hook is in the package. Any other path is named by the installation page, or is below a folder that the
/// package creates, since the user adds secrets there.
#[test]
fn the_paths_of_the_examples_exist_after_the_installation() {
    let text = |path: &str| std::fs::read_to_string(shipped(path)).unwrap();
    let (page, folders) = (text("docs/install.md"), text("systemd/allclear.tmpfiles"));
    let folders: Vec<&str> = folders.lines().filter_map(|line| line.strip_prefix("d ")?.split(' ').next()).collect();
    let is_in_a_folder = |path: &str| folders.iter().any(|folder| path.starts_with(*folder));
    let exists = |path: &str| match path.strip_prefix("/usr/lib/allclear/") {
        Some(program) => shipped(program).exists(),
        None => path.starts_with("/usr/bin/") || page.contains(path) || is_in_a_folder(path),
    };
    for example in ["allclear.toml", "allclear.example.toml"] {
        let paths = paths(&toml::Value::Table(text(example).parse().unwrap()));
        assert!(paths.len() > 4, "{paths:?}");
        let missing: Vec<_> = paths.iter().filter(|path| !exists(path)).collect();
        assert!(missing.is_empty(), "{example}: {missing:?}");
    }
    for missing in ["/usr/lib/allclear/hooks/postgres", "/var/lib/other"] {
        assert!(!exists(missing), "{missing}");
    }
}
