//! An event with hostile text in id, VMs, words and description: a metadata service sends the text, a hook repeats the
//! text, and only visible characters reach a terminal or a journal.

use allclear::wire::pb::allclear::operator::v1::Status;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::said::{ID, STRANGER, hostile_service};
use super::workload::hook;

/// Characters that could control a terminal or hide text; line breaks end lines and are allowed.
fn hidden(text: &str) -> Vec<char> {
    let is_hidden = |letter: &char| {
        (letter.is_control() && *letter != '\n') || ('\u{2028}'..='\u{202e}').contains(letter) || *letter == '\u{feff}'
    };
    text.chars().filter(is_hidden).collect()
}

#[tokio::test]
async fn whatever_names_hold_reaches_terminals_and_journals_as_text_alone() {
    let endpoint = hostile_service();
    // A shell's echo turns the text into an escape sequence.
    let failing = hook("shutdown").exits(1, r"no \033[2J\302\2331mway").with("attempts = 1");
    let plan = Cluster::of(&["db-0"]).workload("data<s>base", vec![failing]);
    let mut cluster = plan.environments(vec![vec![("ALLCLEAR__METADATA__ENDPOINT", endpoint)]]).cold().await;
    cluster.start_all();
    let has_failed = |status: &Status| {
        let blocker = status.events.first().and_then(|event| event.blocker.as_ref());
        blocker.is_some_and(|blocker| blocker.code == "hook_failed")
    };
    let status = cluster.until(0, "held by the hook", has_failed).await;
    assert_eq!(status.events[0].id, ID.to_ascii_lowercase(), "it is known by what the platform calls it");

    let by_id = cluster.says(0, &["explain", ID]);
    for (code, said, wrong) in [cluster.says(0, &["status"]), cluster.says(0, &["events"]), by_id] {
        assert!(code == 0 && said.contains("owned"), "{code}: {said}{wrong}");
        assert_eq!((hidden(&said), hidden(&wrong)), (vec![], vec![]), "{said:?}");
    }
    let (code, _, refused) =
        cluster.says(0, &["hold", &format!("{ID}-another"), "--until", "1h", "--reason", STRANGER]);
    assert!(code != 0 && refused.contains("../E?#%2e") && hidden(&refused).is_empty(), "{code}: {refused:?}");
    for arguments in [&["status", "--json"][..], &["explain", ID, "--json"], &["events", "--export"]] {
        let (code, said, _) = cluster.says(0, arguments);
        assert!(code == 0 && hidden(&said).is_empty(), "{arguments:?}: {said:?}");
        let told: Value = serde_json::from_str(&said).unwrap();
        let event = told.get("events").map_or(&told, |events| &events[0]);
        assert_eq!(
            (&event["id"], &event["resources"][1]),
            (&json!(ID.to_ascii_lowercase()), &json!(STRANGER)),
            "{arguments:?}"
        );
    }

    let log = cluster.log(0);
    assert!(log.contains("owned") || log.contains("e?#"), "the log tells of it: {log}");
    assert!(hidden(&log).is_empty(), "{log:?}");
    for line in log.lines() {
        serde_json::from_str::<Value>(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    }
    let (code, metrics) = cluster.page(0, "/metrics").await;
    let strange = ["<script>", "owned", "passwd", "<s>"].map(|text| metrics.contains(text));
    assert!(code == 200 && strange == [false; 4] && hidden(&metrics).is_empty(), "{metrics}");
    let escaped = ID.bytes().fold(String::new(), |escaped, byte| format!("{escaped}%{byte:02X}"));
    let (code, told) = cluster.page(0, &format!("/v1/events/{escaped}")).await;
    assert_eq!((code, &serde_json::from_str::<Value>(&told).unwrap()["id"]), (200, &json!(ID.to_ascii_lowercase())));
}
