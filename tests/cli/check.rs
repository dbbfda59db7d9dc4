//! `allclear check`.

use super::{allclear, stderr, stdout, written};

const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/allclear.example.toml");

#[test]
fn a_valid_configuration_is_printed_as_a_file_that_says_the_same() {
    let first = allclear(&["check", "--config", EXAMPLE], &[]);
    assert_eq!((first.status.code(), stderr(&first)), (Some(0), ""));
    let folder = tempfile::tempdir().unwrap();
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
    assert_eq!(lines.len(), starts.len(), "{lines:#?}");
    for (line, start) in lines.iter().zip(&starts) {
        assert!(line.starts_with(start), "{line}\n{start}");
    }
}

#[test]
fn what_is_refused_is_a_mistake_like_every_other() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "replica.data_dir = \"/d\"\npolicy.margin = 5\n[cluster.tls]\ncert = \"/c\"\n");
    let output = allclear(&["check", "--config", &path], &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    let expected = format!(
        "{path}:2:17: `policy.margin` is the number 5, not a duration: write a number with its unit in quotes, as \
         \"500ms\", \"10s\", \"2m\" or \"1h\"\n{path}:3:10: `cluster.tls` is refused: this version cannot encrypt; \
         remove it and set `cluster.insecure = true` on a network that nobody else can reach\n"
    );
    assert_eq!(stderr(&output), expected);
}

#[test]
fn what_is_ignored_is_warned_about_and_the_rest_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let hook = "[[workload]]\nname = \"w\"\n[[workload.hook]]\nphase = \"drain\"\ncommand = [\"/h\"]\n";
    let text = format!("replica.data_dir = \"/d\"\n{hook}undo = [\"/u\"]\n");
    let output = allclear(&["check", "--config", &written(folder.path(), &text)], &[]);
    let expected = "warning: `workload.hook.undo` of the drain hook of w is ignored by this version: when the event is \
                    cancelled, only `restore` follows\n";
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), expected));
    assert!(stdout(&output).contains("\nname = \"w\"\n"), "{}", stdout(&output));
}

#[test]
fn the_environment_overrides_the_file() {
    let output = allclear(&["check", "--config", EXAMPLE], &[("ALLCLEAR__POLICY__MARGIN", "3s")]);
    assert!(stdout(&output).contains("\nmargin = \"3s\"\n"), "{}", stdout(&output));
}

#[test]
fn no_address_is_bound() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let text = format!("replica.data_dir = \"/d\"\ncluster.listen = \"{address}\"\n");
    let output = allclear(&["check", "--config", &written(folder.path(), &text)], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_file_that_is_not_there_is_told() {
    let output = allclear(&["check", "--config", "missing.toml"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).starts_with("missing.toml: cannot be read: "), "{}", stderr(&output));
}
