//! The steps of `deploy/docs/install.md` and `deploy/docs/upgrade.md`, run unchanged on three fresh Debian machines;
//! `fresh.py` has the details.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{has, program, shipped};

/// Builds the package without debug symbols.
fn package(folder: &Path, program: &Path, version: &str) -> PathBuf {
    let mut build = Command::new(shipped("debian/build"));
    build.arg(program).arg(folder).arg(version).env("DPKG_DEB_COMPRESSOR_TYPE", "none");
    let output = build.output().unwrap();
    assert!(output.status.success(), "{}", super::told(&output));
    PathBuf::from(String::from_utf8(output.stdout).unwrap().trim())
}

/// `ALLCLEAR_NEXT` names the program of the other version; the default is this program under another version number.
#[test]
#[ignore = "takes minutes, needs root, and the first time fetches a Debian"]
fn the_steps_of_the_page_lead_from_nothing_to_a_running_cluster_and_on() {
    let tools = ["debootstrap", "systemd-nspawn", "ip", "nsenter", "dpkg-deb", "strip"];
    if !tools.iter().all(|tool| has(tool)) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stripped = |from: &Path, name: &str| {
        let to = folder.path().join(name);
        super::done(Command::new("strip").arg("-o").arg(&to).arg(from));
        to
    };
    let this = stripped(Path::new(program()), "this");
    let next =
        std::env::var_os("ALLCLEAR_NEXT").map_or_else(|| this.clone(), |next| stripped(Path::new(&next), "next"));
    let packages =
        [(&this, "0.1.0"), (&next, "0.1.1")].map(|(program, version)| package(folder.path(), program, version));
    // below the build folder, so that the base is built only once
    let base = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bookworm");
    let mut play = Command::new(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/deploy/fresh.py"));
    let played = play.arg(&this).arg(&base).args(&packages).status().unwrap();
    assert!(played.success());
}
