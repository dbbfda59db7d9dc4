//! `allclear check`, `run` and `doctor` check the files themselves, before any other replica would refuse the files.

use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

use serde_json::Value;

use super::pki::{Pki, Wanted, uri};

/// The output of a command for a replica with these files.
fn asked(pki: &Pki, command: &str, also: &str) -> Output {
    let path = pki.path("allclear.toml");
    let shown = |name: &str| pki.path(name).display().to_string();
    let (data, operator, table) = (shown("data"), shown("operator"), pki.table("db-0", also));
    let text = format!(
        "[replica]\nname = \"db-0\"\ndata_dir = {data:?}\n[cluster]\nname = \"tests\"\nlisten = \"127.0.0.3:0\"\n\
         [metadata]\nendpoint = \"http://127.0.0.1:1\"\n[status]\nlisten = \"127.0.0.3:0\"\n\
         [operator]\nsocket = {operator:?}\n{table}"
    );
    std::fs::write(&path, text).unwrap();
    let mut asked = Command::new(env!("CARGO_BIN_EXE_allclear"));
    asked.args([command, "--config"]).arg(&path).env_clear();
    if command == "doctor" {
        asked.arg("--json");
    }
    asked.output().unwrap()
}

/// `check`, `run` and `doctor` all refuse the files, and report `what`.
fn refused(pki: &Pki, also: &str, what: &str) {
    for (command, code) in [("check", 2), ("run", 1)] {
        let output = asked(pki, command, also);
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{command}: {what}: {said}");
        assert!(said.contains(what), "{command}: {what}: {said}");
    }
    let report: Value = serde_json::from_slice(&asked(pki, "doctor", also).stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let is_it = |it: &&Value| it["check"] == "certificate" && it["what"].as_str().unwrap().contains(what);
    assert!(findings.iter().any(|it| is_it(&it) && it["verdict"] == "fail"), "{what}: {findings:#?}");
}

#[test]
fn files_that_would_not_work_are_refused_before_anybody_sees_them() {
    let pki = Pki::new();
    let output = asked(&pki, "check", "");
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains("[cluster.tls]\ncert = ") && printed.contains("names = \"uri\""), "{printed}");

    let good = |file: &str| std::fs::read(pki.path("db-0").join(file)).unwrap();
    let (cert, key, ca) = (good("node.pem"), good("node.key"), good("ca.pem"));
    let spoil = |file: &str, bytes: &[u8], what: &str| {
        let before = good(file);
        pki.replace("db-0", file, bytes);
        refused(&pki, "", what);
        pki.replace("db-0", file, &before);
    };
    let mut signed = Wanted::naming(&uri("tests", "db-0"));
    let mut shown = |change: &dyn Fn(&mut Wanted)| {
        change(&mut signed);
        pki.signed(&signed).pem.into_bytes()
    };
    spoil("node.pem", b"", "`cluster.tls.cert`: ");
    spoil("node.pem", b"", "holds no certificate");
    spoil("node.pem", &std::fs::read(pki.path("db-1/node.pem")).unwrap(), "is not for db-0");
    spoil("node.pem", &shown(&|it| it.years = (2020, 2021)), "has expired; renew the certificate");
    spoil("node.pem", &shown(&|it| it.years = (2090, 2091)), "is not valid yet");
    spoil(
        "node.pem",
        &shown(&|it| (it.years, it.uris[0]) = ((2020, 2100), uri("others", "db-0"))),
        "is for another cluster",
    );
    spoil("node.pem", &shown(&|it| (it.uris, it.dns) = (Vec::new(), vec!["db-0".into()])), "names no replica");
    spoil("node.key", b"nothing", "`cluster.tls.key`: ");
    spoil("node.key", &std::fs::read(pki.path("db-1/node.key")).unwrap(), "is not the key of the certificate");
    spoil("ca.pem", &key, "`cluster.tls.ca`: ");
    pki.authority("other");
    spoil("ca.pem", &std::fs::read(pki.path("other/ca.pem")).unwrap(), "is signed by no authority in cluster.tls.ca");
    assert_eq!((good("node.pem"), good("node.key"), good("ca.pem")), (cert, key, ca));

    let mode = |mode| {
        std::fs::set_permissions(pki.path("db-0/node.key"), std::fs::Permissions::from_mode(mode)).unwrap();
    };
    for open in [0o644, 0o604, 0o620, 0o602] {
        mode(open);
        refused(&pki, "", &format!("has mode {open:04o}, so other users can act as this replica"));
    }
    for closed in [0o400, 0o600, 0o640] {
        mode(closed);
        assert_eq!(asked(&pki, "check", "").status.code(), Some(0), "{closed:o}");
    }
    std::fs::remove_file(pki.path("db-0/node.key")).unwrap();
    refused(&pki, "", "No such file");
}
