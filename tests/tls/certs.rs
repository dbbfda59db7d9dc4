//! `allclear certs`: the generated files, their modes, and the limits of the command.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::pki::certs;

fn said(arguments: &[&str]) -> (Option<i32>, String) {
    let output = certs(arguments);
    assert!(output.stdout.is_empty(), "{output:?}");
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn an_authority_and_its_certificates_are_made_for_nobody_else_to_read_and_no_authority_is_ever_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("new/ca");
    let shown = dir.to_str().unwrap();
    let (code, told) = said(&["init", "--dir", shown, "--cluster", "orders eu"]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("the authority for cluster \"orders eu\" is made, valid until"), "{told}");
    assert_eq!((mode(&dir), mode(&dir.join("ca.key")), mode(&dir.join("ca.pem"))), (0o700, 0o600, 0o644));
    let before = std::fs::read(dir.join("ca.key")).unwrap();
    let (code, told) = said(&["init", "--dir", shown, "--cluster", "orders eu"]);
    assert!(code == Some(1) && told.contains("an existing authority is never replaced"), "{told}");
    std::fs::rename(dir.join("ca.pem"), dir.join("aside")).unwrap();
    let (code, told) = said(&["init", "--dir", shown, "--cluster", "orders eu"]);
    assert!(code == Some(1) && told.contains("ca.key exists"), "{told}");
    std::fs::rename(dir.join("aside"), dir.join("ca.pem")).unwrap();
    assert_eq!(std::fs::read(dir.join("ca.key")).unwrap(), before);

    let of_replica = dir.join("db-0");
    let mut keys = Vec::new();
    for _ in 0..2 {
        let (code, told) = said(&["issue", "--dir", shown, "--replica", "db-0", "--days", "30"]);
        assert!(
            code == Some(0) && told.contains("the certificate for db-0 of cluster \"orders eu\" is made"),
            "{told}"
        );
        assert_eq!((mode(&of_replica), mode(&of_replica.join("node.key"))), (0o700, 0o600));
        keys.push(std::fs::read(of_replica.join("node.key")).unwrap());
        let mut names: Vec<_> = std::fs::read_dir(&of_replica).unwrap().map(|it| it.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["ca.pem", "node.key", "node.pem"]);
    }
    assert_ne!(keys[0], keys[1], "a new certificate has a new key");
}

#[test]
fn what_cannot_be_made_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().to_str().unwrap();
    let told = |arguments: &[&str], code: i32, what: &str| {
        let (found, said) = said(arguments);
        assert!(found == Some(code) && said.contains(what), "{arguments:?}: {found:?} {said}");
    };
    told(&["issue", "--dir", dir, "--replica", "db-0"], 1, "`allclear certs init` makes an authority");
    told(&["init", "--dir", dir, "--cluster", " "], 1, "--cluster is empty");
    told(&["init", "--dir", "/proc/none", "--cluster", "orders"], 1, "cannot make /proc/none");
    told(&["init", "--dir", dir, "--cluster", "orders", "--days", "0"], 2, "0 is not in 1..=36500");
    told(&["init", "--dir", dir, "--cluster", "orders"], 0, "");
    for name in ["../db-0", "", ".", " db-0"] {
        told(&["issue", "--dir", dir, "--replica", name], 1, "cannot be the name of a folder");
    }
    std::fs::write(folder.path().join("ca.key"), "nothing").unwrap();
    told(&["issue", "--dir", dir, "--replica", "db-0"], 1, "the key cannot sign");
    std::fs::write(folder.path().join("ca.pem"), "nothing").unwrap();
    told(&["issue", "--dir", dir, "--replica", "db-0"], 1, "not the certificate of an authority made by");
}
