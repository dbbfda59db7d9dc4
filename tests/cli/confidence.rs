//! Secrets in a configuration: no output shows a secret, and a file readable by every user must not hold secrets.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use super::doctor::Bench;
use super::{allclear, stderr, stdout, written};

const HOOK: &str = r#"[[workload]]
name = "w"
[[workload.hook]]
phase = "drain"
command = ["/usr/bin/env"]
env = { PORT = "5433", MODE = "m4rk-mode", PIN = "7q8" }
env_shown = ["PORT", "LATER"]
"#;

fn set(path: &str, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A replica with this configuration would end at once, for want of a disk.
fn configured(folder: &Path, tables: &str) -> String {
    let socket = folder.join("operator.sock");
    let text = format!(
        "replica = {{ name = \"db-0\", data_dir = \"/dev/null/data\" }}\nmetadata.endpoint = \"http://127.0.0.1:1\"\n\
         status.listen = \"127.0.0.1:0\"\noperator.socket = \"{}\"\nworkloads.socket = \"{}\"\n{tables}",
        socket.display(),
        folder.join("workloads.sock").display()
    );
    written(folder, &text)
}

#[test]
fn a_value_is_shown_when_it_is_said_to_be_harmless_and_else_not() {
    let folder = tempfile::tempdir().unwrap();
    let notify = "[[notify]]\nname = \"a\"\nurl = \"https://127.0.0.1:1/\"\nheaders_shown = [\"x-team\"]\n\
                  headers = { \"X-Team\" = \"databases\", \"X-Api-Key\" = \"m4rk-key\" }\n\
                  header_files = { Authorization = \"credential:hub\" }\n";
    let path = configured(folder.path(), &format!("{HOOK}{notify}"));
    set(&path, 0o640);
    let output = allclear(&["check", "--config", &path], &[]);
    let (printed, told) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(0), "{told}");
    for seen in [
        "PORT = \"5433\"\n",
        "MODE = \"(not shown)\"\n",
        "X-Team = \"databases\"\n",
        "X-Api-Key = \"(not shown)\"\n",
        "Authorization = \"credential:hub\"\n",
    ] {
        assert!(printed.contains(seen), "{seen}: {printed}");
    }
    assert!(!format!("{printed}{told}").contains("m4rk") && !printed.contains("7q8"), "{printed}{told}");
    assert!(told.starts_with("`workload.hook.env.PIN` in line ") && told.contains("too short"), "{told}");
    assert_eq!((told.lines().count(), told.lines().last()), (2, Some("valid")), "{told}");
}

#[test]
fn a_configuration_that_everybody_reads_is_refused_where_it_holds_a_secret() {
    let folder = tempfile::tempdir().unwrap();
    let why = "can be read by every user of this machine, and contains secrets: chmod o= it";
    let named = "workload.hook.env.MODE, workload.hook.env.PIN";
    let values = ", MODE = \"m4rk-mode\", PIN = \"7q8\"";
    for (tables, mode, is_refused) in [
        (HOOK.to_owned(), 0o644, true),
        (HOOK.to_owned(), 0o640, false),
        (HOOK.replace("\"LATER\"", "\"MODE\", \"PIN\""), 0o644, false),
        (format!("{}env_files = {{ MODE = \"/m\" }}\n", HOOK.replace(values, "")), 0o644, false),
    ] {
        let path = configured(folder.path(), &tables);
        set(&path, mode);
        let output = allclear(&["run", "--config", &path], &[("ALLCLEAR_LOG", "off")]);
        let told = stderr(&output);
        assert_eq!(told.contains(why) && told.contains(named), is_refused, "{mode:o}: {told}");
        assert_eq!(output.status.code(), Some(if is_refused { 2 } else { 1 }), "{mode:o}: {told}");
        let output = allclear(&["check", "--config", &path], &[]);
        assert_eq!((stderr(&output).contains(why), output.status.code()), (is_refused, Some(0)));
    }
    // The secret is not in the file.
    let path = configured(folder.path(), &HOOK.replace(values, ""));
    set(&path, 0o644);
    let by_variable = [("ALLCLEAR__WORKLOAD__0__HOOK__0__ENV__MODE", "m4rk-mode"), ("ALLCLEAR_LOG", "off")];
    let output = allclear(&["run", "--config", &path], &by_variable);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

#[test]
fn what_a_hook_is_given_in_confidence_is_not_shown_when_it_is_tried_by_hand() {
    let bench = Bench::new();
    let token = bench.path("token");
    fs::write(&token, "m4rk-token").unwrap();
    set(&token, 0o600);
    let files = format!("env_files = {{ TOKEN = {token:?} }}\n");
    let path = written(bench.folder.path(), &format!("{}{HOOK}{files}", bench.text()));
    for more in [&[][..], &["--json"]] {
        let asked = [&["hook", "run", "--config", &path, "db-0/w/drain"], more].concat();
        let output = allclear(&asked, &[("PATH", "/usr/bin:/bin"), ("TMPDIR", &bench.path(""))]);
        let shown = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{shown}{}", stderr(&output));
        assert!(!shown.contains("m4rk") && shown.contains("5433") && shown.contains("TOKEN=***"), "{shown}");
    }
}
