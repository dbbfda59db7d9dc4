//! The Debian package, built from the program under test.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::{done, has, program, shipped};

/// Builds without debug symbols and without compression: the package is inspected, not sent.
pub(super) fn built(folder: &Path) -> PathBuf {
    let mut build = Command::new(shipped("debian/build"));
    build.arg(stripped(folder)).arg(folder).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", super::told(&output));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

pub(super) fn stripped(folder: &Path) -> PathBuf {
    let stripped = folder.join("program");
    done(Command::new("strip").arg("-o").arg(&stripped).arg(program()));
    stripped
}

pub(super) fn unpacked(package: &Path, folder: &Path) -> PathBuf {
    let tree = folder.join("tree");
    done(Command::new("dpkg-deb").arg("--raw-extract").arg(package).arg(&tree));
    tree
}

/// The unpacked package, built once. Tests do not change its files.
pub(super) fn tree() -> &'static Path {
    static TREE: OnceLock<PathBuf> = OnceLock::new();
    TREE.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("package");
        // An earlier run has left its files, or there was no earlier run.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        unpacked(&built(&folder), &folder)
    })
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).collect()
}

#[test]
fn the_package_has_what_its_parts_name() {
    if !has("dpkg-deb") || !has("strip") {
        return;
    }
    let tree = tree();
    let text = |path: &str| std::fs::read_to_string(tree.join(path)).unwrap();

    let unit = text("usr/lib/systemd/system/allclear.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/")).unwrap();
    let installed = tree.join(start.split(' ').next().unwrap());
    let version = done(Command::new(&installed).arg("--version"));
    assert_eq!(version.trim(), format!("allclear {}", env!("CARGO_PKG_VERSION")));
    let field = |name: &str| {
        let control = text("DEBIAN/control");
        control.lines().find_map(|line| line.strip_prefix(name)).unwrap().trim().to_owned()
    };
    assert_eq!(field("Version:"), env!("CARGO_PKG_VERSION"));
    assert!(field("Depends:").starts_with("libc6 (>= 2."), "{}", field("Depends:"));

    // every program that a table of a hook set names
    let hooks = files(&tree.join("usr/lib/allclear/hooks"));
    for table in files(&tree.join("usr/share/doc/allclear/hooks")) {
        let table = text(&format!("usr/share/doc/allclear/hooks/{table}"));
        for named in table.split("/usr/lib/allclear/hooks/").skip(1) {
            let name = named.split(|letter: char| !letter.is_alphanumeric() && !"._".contains(letter)).next().unwrap();
            assert!(Path::new(name).extension().is_none_or(|end| end != "py") || hooks.contains(name), "{name}");
        }
    }
    let hook = tree.join("usr/lib/allclear/hooks/redis_hook.py");
    assert!(nix::unistd::access(&hook, nix::unistd::AccessFlags::X_OK).is_ok());

    let pages = files(&tree.join("usr/share/man/man1"));
    assert!(pages.contains("allclear.1.gz") && pages.contains("allclear-run.1.gz"), "{pages:?}");
    assert!(text("usr/share/bash-completion/completions/allclear").contains("allclear"));
    for licence in ["LICENSE-MIT", "LICENSE-APACHE", "copyright"] {
        assert!(!text(&format!("usr/share/doc/allclear/{licence}")).is_empty(), "{licence}");
    }
}

#[test]
fn nothing_starts_before_it_is_configured_and_the_example_is_no_configuration() {
    if !has("dpkg-deb") || !has("strip") {
        return;
    }
    let tree = tree();
    let text = |path: &str| std::fs::read_to_string(tree.join(path)).unwrap();
    let unit = text("usr/lib/systemd/system/allclear.service");
    let needed = unit.lines().find_map(|line| line.strip_prefix("ConditionPathExists=/")).unwrap();
    assert!(unit.contains(&format!("--config /{needed}")), "{needed}");
    assert!(!tree.join(needed).exists(), "/{needed} is written by people");
    assert_eq!(text("DEBIAN/conffiles"), "/etc/allclear/allclear.example.toml\n");
    let example = std::fs::read_to_string(shipped("allclear.example.toml")).unwrap();
    assert_eq!(text("etc/allclear/allclear.example.toml"), example, "the one that tests/config reads");
}

/// What the packages of tests have in common.
const UNCOMPRESSED: &str = "uses-no-compression-for-control-tarball,uses-no-compression-for-data-tarball";

#[test]
fn the_package_keeps_to_the_rules_of_debian() {
    crate::left_out::long!();
    if !["dpkg-deb", "strip", "lintian"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let package = built(folder.path());
    let mut lintian = Command::new("lintian");
    lintian.env("TMPDIR", folder.path()).args([
        "--allow-root",
        "--fail-on",
        "error,warning",
        "--suppress-tags",
        UNCOMPRESSED,
    ]);
    let told = done(lintian.arg(&package));
    assert_eq!(told, "");
}

#[test]
fn the_bill_of_materials_names_every_crate_that_the_program_asks_for() {
    let text = done(&mut Command::new(shipped("sbom")));
    let bill: serde_json::Value = serde_json::from_str(&text).unwrap();
    let components = bill["components"].as_array().unwrap();
    let names: BTreeSet<&str> = components.iter().map(|part| part["name"].as_str().unwrap()).collect();
    for name in ["openraft", "redb", "tonic", "libc", "serde_json"] {
        assert!(names.contains(name), "{name}");
    }
    for name in ["allocation-counter", "cc", "allclear", "base2histogram", "display-more"] {
        assert!(!names.contains(name), "{name} is not linked into the program, or is part of it");
    }
    for part in components {
        let has_licence = part["licenses"][0]["expression"].as_str().is_some_and(|licence| licence != "NOASSERTION");
        assert!(has_licence && part["hashes"][0]["content"].is_string(), "{part}");
    }
}
