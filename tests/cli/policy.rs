//! `allclear policy test`. `BLESS=1 cargo test --test processes cli::` rewrites the expected output: read the changes.

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::{allclear, program, stderr, stdout, written};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/policy");
const AT: &str = "2026-01-01T00:00:00Z";

fn file(name: &str) -> String {
    format!("{FOLDER}/{name}")
}

#[test]
fn what_would_be_done_with_each_event_of_a_document_is_told() {
    // The output contains the document's path, so the path must be equal on every machine.
    let document = std::fs::File::open(file("document.json")).unwrap();
    let mut test = Command::new(program());
    test.args(["policy", "test", "--config", &file("allclear.toml"), "--at", AT, "-"]).env_clear().stdin(document);
    let output = test.output().unwrap();
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(file("told.txt"), stdout(&output)).unwrap();
    }
    assert_eq!(stdout(&output), std::fs::read_to_string(file("told.txt")).unwrap());
}

#[test]
fn without_a_document_every_built_in_scenario_is_told_and_twice_the_same() {
    let test = ["policy", "test", "--config", &file("allclear.toml"), "--at", AT, "--json"];
    let output = allclear(&test, &[]);
    assert_eq!((output.status.code(), stderr(&output)), (Some(0), ""));
    assert_eq!(stdout(&output), stdout(&allclear(&test, &[])));
    let report: serde_json::Value = serde_json::from_str(stdout(&output)).unwrap();
    let rules = |name: &str| -> Vec<String> {
        let case = report["cases"].as_array().unwrap().iter().find(|case| case["name"] == name).unwrap();
        case["events"].as_array().unwrap().iter().map(|event| event["rule"].as_str().unwrap().into()).collect()
    };
    assert_eq!(report["cases"].as_array().unwrap().len(), allclear::fake_cloud::SCENARIOS.len());
    assert_eq!(rules("live-migration"), ["quiet freezes"]);
    assert_eq!(rules("terminate"), ["default: user-initiated"; 2]);
    assert_eq!(rules("wave"), ["default"; 3]);
    assert_eq!(rules("hardware-failure"), ["default: already started"]);
}

#[test]
fn a_scenario_with_more_vms_than_are_configured_is_left_out_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "replica.data_dir = \"/d\"\n");
    let output = allclear(&["policy", "test", "--config", &path, "--at", AT], &[]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let told = "\ntwo-vms-one-event\n  not tried: the scenario needs 2 VMs, and the configuration names 1\n";
    assert!(stdout(&output).contains(told), "{}", stdout(&output));
}

#[test]
fn an_event_by_itself_needs_neither_id_nor_status() {
    let folder = tempfile::tempdir().unwrap();
    let event = folder.path().join("event.json");
    std::fs::write(&event, r#"{"EventType":"Freeze","EventSource":"User","Resources":["db-0"]}"#).unwrap();
    let test = ["policy", "test", "--config", &file("allclear.toml"), "--at", AT, event.to_str().unwrap()];
    let output = allclear(&test, &[]);
    assert!(stdout(&output).contains("    treatment   prepare\n"), "{}", stdout(&output));
}

#[test]
fn why_a_hook_is_left_out_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let config = "replica.name = \"db-0\"\nreplica.data_dir = \"/d\"\n[[workload]]\nname = \"pg\"\n\
        [[workload.hook]]\nphase = \"checkpoint\"\ncommand = [\"/bin/true\"]\ntype = [\"Redeploy\"]\n\
        [[workload.hook]]\nphase = \"failover\"\ncommand = [\"/bin/true\"]\n\
        optional_if_short = true\nworst = \"10m\"\n";
    let path = written(folder.path(), config);
    let file = folder.path().join("event.json");
    for (event, told) in [
        (
            r#""EventType":"Freeze","EventSource":"Platform","DurationInSeconds":5"#,
            &["failover of pg on db-0: the freeze is brief, and the hook has no min_freeze"][..],
        ),
        (
            r#""EventType":"Reboot","EventSource":"User","NotBefore":"Thu, 01 Jan 2026 00:01:00 GMT""#,
            &[
                "checkpoint of pg on db-0: the hook is not for events of this type",
                "failover of pg on db-0: the notice of 55s is shorter than the 10m that the hook may take",
            ],
        ),
        (
            r#""EventType":"Reboot","EventSource":"Platform","EventStatus":"Started""#,
            &["failover of pg on db-0: the impact has begun, and the hook runs on the affected VM"],
        ),
        (
            r#""EventType":"Terminate","EventSource":"User""#,
            &["checkpoint of pg on db-0: the treatment does not include this phase"],
        ),
    ] {
        std::fs::write(&file, format!(r#"{{"Resources":["db-0"],{event}}}"#)).unwrap();
        let output = allclear(&["policy", "test", "--config", &path, "--at", AT, file.to_str().unwrap()], &[]);
        for line in told {
            assert!(stdout(&output).contains(line), "{line}: {}{}", stdout(&output), stderr(&output));
        }
    }
}

#[test]
fn what_cannot_be_read_is_told_with_its_place_and_counts_as_wrong_usage() {
    let told = |text: &str| {
        let mut test = Command::new(program());
        test.args(["policy", "test", "--config", &file("allclear.toml"), "-"]).env_clear();
        let mut running = test.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        running.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let output = running.wait_with_output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
        stderr(&output).to_owned()
    };
    assert_eq!(told(""), "-: the text is empty\n");
    assert_eq!(told("[]"), "-: the JSON value is neither an event nor a document with `Events`\n");
    assert_eq!(told(r#"{"Events":[]}"#), "-: the document lists no event\n");
    let without_id = r#"{"Events":[{"EventId":"a"},{"EventType":"Reboot"}]}"#;
    assert_eq!(told(without_id), "-: event 1, counted from 0: EventId is missing or not text\n");
    assert!(told("{").starts_with("-: the text is not JSON: "));
    let missing = allclear(&["policy", "test", "--config", &file("allclear.toml"), "missing.json"], &[]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).starts_with("missing.json: cannot be read: "), "{}", stderr(&missing));
    let unconfigured = allclear(&["policy", "test", "--config", "missing.toml"], &[]);
    assert_eq!(unconfigured.status.code(), Some(2));
    assert!(stderr(&unconfigured).starts_with("missing.toml: cannot be read: "), "{}", stderr(&unconfigured));
}
