//! `allclear check`.

use std::path::Path;

use super::{allclear, stderr, stdout, written};

/// The example of `deploy`, with existing certificates.
fn example(folder: &Path) -> String {
    let text = include_str!("../../deploy/allclear.example.toml");
    let shown = folder.to_str().unwrap();
    for arguments in [["init", "--dir", shown, "--cluster", "orders"], ["issue", "--dir", shown, "--replica", "db-0"]] {
        let output = allclear(&[&["certs"], &arguments[..]].concat(), &[]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    written(folder, &text.replace("/etc/allclear/tls", folder.join("db-0").to_str().unwrap()))
}

#[test]
fn a_valid_configuration_is_printed_as_a_file_that_says_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let first = allclear(&["check", "--config", &example(folder.path())], &[]);
    assert_eq!((first.status.code(), stderr(&first)), (Some(0), "valid\n"));
    let again = allclear(&["check", "--config", &written(folder.path(), stdout(&first))], &[]);
    assert_eq!(stdout(&first), stdout(&again));
    assert_eq!(again.status.code(), Some(0));
}

#[test]
fn every_mistake_is_on_standard_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "replica.data_dir = \"/d\"\nmetadata.pol_interval = \"1s\"\npolicy.margin = 5\n");
    let output = allclear(&["check", "--config", &path], &[("ALLCLEAR__CLUSTER__MAX_VOTERS", "8")]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let starts = [
        format!("{path}:2:10: `metadata.pol_interval` is not a known key: did you mean `poll_interval`?"),
        format!("{path}:3:17: `policy.margin` is the number 5, not a duration"),
        "environment variable ALLCLEAR__CLUSTER__MAX_VOTERS: `cluster.max_voters` is 8".to_owned(),
    ];
    let lines: Vec<_> = stderr(&output).lines().collect();
    assert_eq!((lines.len(), lines.last()), (starts.len() + 1, Some(&"invalid")), "{lines:#?}");
    for (line, start) in lines.iter().zip(&starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
}

#[test]
fn what_is_valid_and_probably_not_intended_is_a_warning() {
    let folder = tempfile::tempdir().unwrap();
    let text = |after: &str, most: u32| {
        format!(
            "replica = {{ name = \"db-0\", data_dir = \"/d\" }}\n\
             cluster = {{ name = \"orders\", insecure = true, listen = \"127.0.0.1:1\", replicas = {{ \
             db-0 = \"127.0.0.1:1\", db-1 = \"127.0.0.1:2\", db-2 = \"127.0.0.1:3\" }} }}\n\
             [[group]]\nname = \"orders\"\nmax_unavailable = {most}\n\
             [[workload]]\nname = \"pooler\"\n[[workload]]\nname = \"pg\"\ngroup = \"orders\"\nafter = [\"{after}\"]\n"
        )
    };
    let doubtful = allclear(&["check", "--config", &written(folder.path(), &text("poler", 3))], &[]);
    let lines: Vec<_> = stderr(&doubtful).lines().collect();
    assert_eq!((doubtful.status.code(), lines.len(), lines.last()), (Some(0), 3, Some(&"valid")), "{lines:#?}");
    assert!(
        lines[0].starts_with("warning: `after` of the workload pg names poler, and this file has no"),
        "{lines:#?}"
    );
    assert!(lines[1].starts_with("warning: `max_unavailable` of the group orders is 3"), "{lines:#?}");
    let intended = allclear(&["check", "--config", &written(folder.path(), &text("pooler", 2))], &[]);
    assert_eq!((intended.status.code(), stderr(&intended)), (Some(0), "valid\n"));
}

#[test]
fn the_environment_overrides_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let output = allclear(&["check", "--config", &example(folder.path())], &[("ALLCLEAR__POLICY__MARGIN", "3s")]);
    assert!(stdout(&output).contains("\nmargin = \"3s\"\n"), "{}", stdout(&output));
}

#[test]
fn no_address_is_bound() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("replica.data_dir = \"/d\"\ncluster.listen = \"{address}\"\ncluster.insecure = true\n");
    let output = allclear(&["check", "--config", &written(folder.path(), &text)], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let output = allclear(&["check", "--config", "missing.toml"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("missing.toml: cannot be read: "), "{}", stderr(&output));
}
