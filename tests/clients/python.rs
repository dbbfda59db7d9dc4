//! The Python library, installed for tests.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// The interpreter, and the folder with the installed package. `None` without the packages that `.ci/tools` installs.
/// `ALLCLEAR_PYTHON` names another interpreter.
pub(crate) fn installed() -> Option<(PathBuf, PathBuf)> {
    static INSTALLED: OnceLock<Option<(PathBuf, PathBuf)>> = OnceLock::new();
    let installed = INSTALLED.get_or_init(install).clone();
    if installed.is_none() {
        crate::left_out::lacks("the packages of the Python library");
    }
    installed
}

/// Installs the package from the source tree, without a network.
fn install() -> Option<(PathBuf, PathBuf)> {
    let wanted = env::var_os("ALLCLEAR_PYTHON").map(PathBuf::from);
    let interpreter = wanted.clone().unwrap_or_else(|| Path::new(ROOT).join("target/python/bin/python3"));
    let has_all = ["-c", "import grpc, google.protobuf, grpc_tools, hatchling"];
    let found = Command::new(&interpreter).args(has_all).stderr(Stdio::null()).status();
    if !found.is_ok_and(|status| status.success()) {
        return None;
    }
    let package = folder();
    let installed = Command::new(&interpreter)
        .args(["-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--target"])
        .arg(&package)
        .arg(Path::new(ROOT).join("deploy/clients/python"))
        .output()
        .unwrap();
    assert!(installed.status.success(), "{}", String::from_utf8_lossy(&installed.stderr));
    Some((interpreter, package))
}

/// One folder for each process; folders of ended processes are removed.
fn folder() -> PathBuf {
    let parent = Path::new(env!("CARGO_TARGET_TMPDIR"));
    for entry in std::fs::read_dir(parent).unwrap().flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("python-"));
        if process.is_some_and(|process| !Path::new("/proc").join(process).exists()) {
            // another process may remove the folder, too
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
    parent.join(format!("python-{}", std::process::id()))
}
