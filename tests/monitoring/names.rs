//! Every metric named in any text exists in the real output, with the labels and values of the query.

use std::collections::BTreeSet;

use allclear::core::model::attempt::Outcome;
use allclear::core::model::claim::PostOutcome;

use super::cluster::Cluster;
use super::exposition::Exposition;
use super::promtool;
use super::shipped;

/// The metrics that users rely on, each with its labels.
const PROMISED: &[(&str, &[&str])] = &[
    ("allclear_is_leader", &[]),
    ("allclear_has_quorum", &[]),
    ("allclear_events_open", &["stage"]),
    ("allclear_event_blocked_seconds", &["blocker"]),
    ("allclear_approvals_total", &["reason", "outcome"]),
    ("allclear_hook_attempts_total", &["phase", "outcome"]),
    ("allclear_hook_duration_seconds_bucket", &["phase"]),
    ("allclear_announce_to_approval_seconds_bucket", &[]),
    ("allclear_takeovers_total", &["rung"]),
    ("allclear_metadata_polls_total", &["result"]),
    ("allclear_metadata_last_success_timestamp_seconds", &[]),
    ("allclear_raft_term", &[]),
    ("allclear_raft_applied_index", &[]),
    ("allclear_build_info", &["version"]),
];
/// All labels: each has a fixed set of values.
const LABELS: [&str; 13] = [
    "blocker", "cause", "door", "le", "outcome", "phase", "reason", "result", "role", "rung", "stage", "state", "topic",
];

#[tokio::test]
async fn every_metric_that_is_named_is_in_the_output_of_a_replica_that_has_done_nothing_yet() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let told = Exposition::of(&cluster, 0).await;
    promtool::check_metrics(&told.text);
    let (names, labels) = (told.names(), told.labels());
    for (name, wanted) in PROMISED {
        assert!(names.contains(*name), "{name} is promised and is not there");
        for label in *wanted {
            assert!(labels.contains(&((*name).into(), (*label).into())), "{name} has no label {label}");
        }
    }
    let has_no_series = |outcome: &&&str| !told.text.contains(&format!("outcome=\"{outcome}\""));
    let outcomes = PostOutcome::NAMES.iter().chain(Outcome::NAMES);
    assert_eq!(
        outcomes.filter(has_no_series).collect::<Vec<_>>(),
        Vec::<&&str>::new(),
        "a first one is seen as a rise"
    );
    let known: BTreeSet<&str> = LABELS.into_iter().chain(["version"]).collect();
    let unknown: Vec<_> = labels.iter().filter(|(_, label)| !known.contains(label.as_str())).collect();
    assert!(unknown.is_empty(), "are their values bounded? {unknown:?}");
    let missing = missing(&told, &shipped::texts());
    assert!(missing.is_empty(), "named in deploy/monitoring and not in the output: {missing:#?}");
    assert!(told.text.len() < 64 * 1024, "a scrape of {} bytes", told.text.len());
}

/// The names, and the values of labels, in these texts that are missing in the output.
fn missing(told: &Exposition, texts: &[(&'static str, String)]) -> Vec<String> {
    let names = told.names();
    let mut missing = Vec::new();
    for (file, text) in texts {
        for (name, labels) in asked(text) {
            if !names.contains(&name) && !names.contains(&format!("{name}_bucket")) {
                missing.push(format!("{file}: {name}"));
            }
            for (label, value) in labels {
                let is_told = |line: &str| {
                    line.starts_with(&format!("{name}{{")) && line.contains(&format!("{label}=\"{value}\""))
                };
                if !told.text.lines().any(is_told) {
                    missing.push(format!("{file}: {name} with {label}={value:?}"));
                }
            }
        }
    }
    missing
}

type Asked = (String, Vec<(String, String)>);

/// Every `allclear_…` of a text, with the values of labels in the braces behind the name. Labels added by Prometheus
/// are omitted.
fn asked(text: &str) -> Vec<Asked> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices("allclear_") {
        let is_inside = text[..at].ends_with(|before: char| before.is_ascii_alphanumeric() || "_-/.".contains(before));
        let name: String = text[at..].chars().take_while(|it| it.is_ascii_lowercase() || *it == '_').collect();
        if is_inside || name == "allclear_" {
            continue;
        }
        let braces = text[at + name.len()..].strip_prefix('{').and_then(|rest| rest.split_once('}'));
        let matchers = braces.map_or("", |(inside, _)| inside);
        let labels = matchers.split("\",").filter_map(|matcher| {
            let (label, value) = matcher.split_once(['=', '!'])?;
            let values = value.trim_start_matches(['=', '~']).trim_matches('"').replace(['(', ')'], "");
            let values: Vec<_> = values.split('|').map(|value| (label.trim().to_owned(), value.to_owned())).collect();
            (!["cluster", "instance", "job", "version"].contains(&label.trim())).then_some(values)
        });
        found.push((name.clone(), labels.flatten().collect()));
    }
    found
}

#[test]
fn what_nobody_tells_is_found() {
    let told = Exposition { text: "allclear_a{state=\"on\"} 1\nallclear_b 2\n".into() };
    let of = |text: &str| missing(&told, &[("rules", text.to_owned())]);
    assert_eq!(of("max(allclear_a{state=\"on\"}) > allclear_b{cluster=\"x\"}"), [""; 0]);
    assert_eq!(of("allclear_c"), ["rules: allclear_c"]);
    assert_eq!(of("allclear_a{cluster=~\"$c\",state=~\"on|off\"}"), ["rules: allclear_a with state=\"off\""]);
    assert_eq!(of("allclear_a{state!=\"of\"}"), ["rules: allclear_a with state=\"of\""]);
}
