//! Every kind of mistake with its exact words. The cases are texts in `mistakes/`: a title after `###`, a
//! configuration, `---`, and the expected message. `ALLCLEAR_BLESS=1` writes the present messages; review the diff.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

struct Case {
    title: String,
    text: String,
    expected: String,
}

fn cases(text: &str) -> Vec<Case> {
    let case = |case: &str| {
        let (title, rest) = case.split_once('\n').unwrap();
        let (text, expected) = rest.split_once("---\n").unwrap();
        Case { title: title.trim().into(), text: text.into(), expected: expected.trim().into() }
    };
    text.split("### ").skip(1).map(case).collect()
}

fn said(text: &str) -> String {
    super::read(text).map_or_else(|mistakes| mistakes.to_string(), |_| "valid".to_owned())
}

fn files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/config/mistakes");
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn every_mistake_is_told_in_these_words() {
    let bless = std::env::var_os("ALLCLEAR_BLESS").is_some();
    let mut differences = String::new();
    for file in files() {
        let cases = cases(&std::fs::read_to_string(&file).unwrap());
        assert!(!cases.is_empty(), "{} has no case", file.display());
        let mut blessed = String::new();
        for Case { title, text, expected } in cases {
            let said = said(&text);
            write!(blessed, "### {title}\n{text}---\n{said}\n\n").unwrap();
            if said != expected {
                write!(differences, "{}: {title}\nexpected:\n{expected}\nsaid:\n{said}\n\n", file.display()).unwrap();
            }
        }
        if bless {
            std::fs::write(&file, format!("{}\n", blessed.trim_end())).unwrap();
        }
    }
    assert!(bless || differences.is_empty(), "{differences}");
}

#[test]
fn more_replicas_than_a_cluster_has_are_a_mistake() {
    let named = |count: usize| {
        let replicas: Vec<_> = (0..count).map(|each| format!("r{each} = \"127.0.0.1:{}\"", each + 1)).collect();
        let replicas = replicas.join(", ");
        said(&format!(
            "replica = {{ data_dir = \"/d\", name = \"r0\" }}\n[cluster]\nname = \"c\"\nreplicas = {{ {replicas} }}\n\
             insecure = true\n"
        ))
    };
    assert_eq!(named(100), "valid");
    let expected = "allclear.toml:4:1: `cluster.replicas` names 101 replicas: a cluster has at most 100; make several \
                    clusters";
    assert_eq!(named(101), expected);
}

#[test]
fn more_workloads_than_a_replica_has_are_a_mistake() {
    let with = |count: usize| {
        let workloads: Vec<_> = (0..count).map(|each| format!("[[workload]]\nname = \"w{each}\"\n")).collect();
        said(&format!("replica = {{ data_dir = \"/d\", name = \"r0\" }}\n{}", workloads.concat()))
    };
    assert_eq!(with(64), "valid");
    let expected = "allclear.toml:2:3: `workload` is listed 65 times: a replica has at most 64 workloads; remove \
                    workloads, or prepare several with one hook";
    assert_eq!(with(65), expected);
}

#[test]
fn a_file_that_cannot_be_read_is_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let error_of = |path: &Path| allclear::config::load(path, []).unwrap_err().to_string();
    let missing = folder.path().join("missing.toml");
    assert!(error_of(&missing).starts_with(&format!("{}: cannot be read: No such file", missing.display())));
    let path = folder.path().join("allclear.toml");
    std::fs::write(&path, b"name = \"\xff\"").unwrap();
    assert_eq!(error_of(&path), format!("{}: is not UTF-8 text", path.display()));
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert_eq!(error_of(&path), format!("{}: is longer than 1 MiB, the limit for a configuration", path.display()));
}
