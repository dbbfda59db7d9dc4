//! Prometheus' own check of metrics and rules. `.ci/promtool` unpacks the tool into `target/prometheus`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// `None` without the tool.
fn installed() -> Option<PathBuf> {
    let unpacked = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/prometheus/usr/bin/promtool");
    let found = [unpacked, PathBuf::from("promtool")].into_iter().find(|program| {
        let version = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        version.is_ok_and(|status| status.success())
    });
    if found.is_none() {
        crate::left_out::lacks("promtool");
    }
    found
}

/// The tool's objections as an error; `Ok` without objections, or without the tool.
pub(crate) fn judge(arguments: &[&str], folder: &Path, input: &str) -> Result<(), String> {
    let Some(program) = installed() else { return Ok(()) };
    let mut child = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    // The tool warns of names and help texts, and exits with 0.
    let warns = arguments.first() == Some(&"check") && arguments.get(1) == Some(&"metrics") && !said.trim().is_empty();
    if output.status.success() && !warns { Ok(()) } else { Err(said.into_owned()) }
}

pub(crate) fn check_metrics(text: &str) {
    let judged = judge(&["check", "metrics"], Path::new("/"), text);
    assert_eq!(judged, Ok(()), "{text}");
}

/// False without the tool.
pub(crate) fn is_there() -> bool {
    installed().is_some()
}

#[test]
fn what_is_wrong_is_seen() {
    if !is_there() {
        return;
    }
    for wrong in [
        "allclear_things 1\n",
        "# HELP allclear_things Things.\n# TYPE allclear_things counter\nallclear_things 1\n",
        "# HELP allclear_wait_ms Wait.\n# TYPE allclear_wait_ms gauge\nallclear_wait_ms 1 2 3\n",
    ] {
        assert!(judge(&["check", "metrics"], Path::new("/"), wrong).is_err(), "{wrong}");
    }
    let good = "# HELP allclear_things_total Things.\n# TYPE allclear_things_total counter\nallclear_things_total 1\n";
    assert_eq!(judge(&["check", "metrics"], Path::new("/"), good), Ok(()));
}
