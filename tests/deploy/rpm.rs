//! The RPM package, built from the program under test and installed into an empty root.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::package::{built, stripped, unpacked};
use super::{done, has, shipped};

/// Files and links below a folder, relative to it.
fn files_below(root: &Path) -> BTreeSet<PathBuf> {
    let (mut found, mut folders) = (BTreeSet::new(), vec![root.to_path_buf()]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path());
            } else {
                found.insert(entry.path().strip_prefix(root).unwrap().to_path_buf());
            }
        }
    }
    found
}

#[test]
fn the_rpm_package_installs_the_files_of_the_debian_package() {
    crate::left_out::long!();
    if !crate::left_out::is_root() || !["rpmbuild", "dpkg-deb", "strip"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let debian = files_below(&unpacked(&built(folder.path()), folder.path()));
    let mut build = Command::new(shipped("rpm/build"));
    let output = build.arg(stripped(folder.path())).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", super::told(&output));
    let package = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());

    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    let rpm = |arguments: &[&str]| {
        done(Command::new("rpm").args(["--dbpath", "/rpmdb", "--root"]).arg(&root).args(arguments).arg(&package))
    };
    // The empty root has no shell for the scripts, and none of the libraries.
    rpm(&["--install", "--nodeps", "--noscripts"]);
    let of_debian_alone = |path: &Path| {
        path.starts_with("DEBIAN") || path.ends_with("changelog.gz") || path.ends_with("allclear/copyright")
    };
    let same = |path: &PathBuf| match path.strip_prefix("usr/share/zsh/vendor-completions") {
        Ok(name) => Path::new("usr/share/zsh/site-functions").join(name),
        Err(_) => path.clone(),
    };
    let expected: BTreeSet<_> = debian.iter().filter(|path| !of_debian_alone(path)).map(same).collect();
    let installed: BTreeSet<_> = files_below(&root).into_iter().filter(|path| !path.starts_with("rpmdb")).collect();
    assert_eq!(installed, expected);
    let program = root.join("usr/bin/allclear");
    let version = done(Command::new(&program).arg("--version"));
    assert_eq!(version.trim(), format!("allclear {}", env!("CARGO_PKG_VERSION")));
    assert_eq!(program.metadata().unwrap().uid(), 0);

    let asked = |what: &str| done(Command::new("rpm").args(["--query", "--package", what]).arg(&package));
    assert_eq!(asked("--configfiles"), "/etc/allclear/allclear.example.toml\n");
    let needed = asked("--requires");
    assert!(needed.contains("libc.so.6") && needed.contains("systemd") && !needed.contains("python"), "{needed}");
    let scripts = asked("--scripts");
    for step in ["systemd-sysusers allclear.conf", "systemd-tmpfiles --create", "enable allclear.service", "stop"] {
        assert!(scripts.contains(step), "{step}: {scripts}");
    }
    // A user's changes of the example stay, and the folder of the certificates is the user's.
    let own = root.join("etc/allclear/tls");
    std::fs::create_dir(&own).unwrap();
    done(Command::new("rpm").args(["--dbpath", "/rpmdb", "--root"]).arg(&root).args([
        "--erase",
        "--noscripts",
        "allclear",
    ]));
    assert!(own.exists() && !program.exists());
}
