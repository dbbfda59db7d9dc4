//! The contents of `deploy/monitoring`: rules that Prometheus accepts, each tested to fire and not to fire, each with a
//! section in `deploy/docs/alerts.md`, and a dashboard with queries that can be parsed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::promtool;

const RULES: &str = "allclear.rules.yml";
const TESTS: &str = "allclear.rules.test.yml";
const PAGE: &str = "../docs/alerts.md";
const DASHBOARD: &str = "grafana.json";
/// Required fields of every alert.
const SAID: [&str; 5] = ["expr: ", "severity: ", "summary: ", "description: ", "runbook_url: "];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/monitoring")
}

fn read(file: &str) -> String {
    std::fs::read_to_string(folder().join(file)).unwrap()
}

/// All texts that name metrics.
pub(crate) fn texts() -> Vec<(&'static str, String)> {
    let expressions = expressions(&read(DASHBOARD)).join("\n");
    let others = [RULES, TESTS, PAGE, "README.md"].map(|file| (file, read(file)));
    others.into_iter().chain([(DASHBOARD, expressions)]).collect()
}

/// The queries of a dashboard to Prometheus.
fn expressions(dashboard: &str) -> Vec<String> {
    fn collect(value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("expr").and_then(Value::as_str).map(String::from));
                map.values().for_each(|value| collect(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| collect(value, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    collect(&serde_json::from_str(dashboard).unwrap(), &mut found);
    found
}

/// Each alert with the text of its rule.
fn alerts(rules: &str) -> Vec<(&str, &str)> {
    let rules = rules.split("- alert: ").skip(1);
    rules.map(|rule| rule.split_once('\n').unwrap()).map(|(name, text)| (name.trim(), text)).collect()
}

/// The anchors of headings, as a Markdown renderer names them.
fn anchors(markdown: &str) -> BTreeSet<String> {
    let headings = markdown.lines().filter_map(|line| line.strip_prefix('#'));
    headings.map(|heading| heading.trim_matches(['#', ' ']).to_lowercase().replace(' ', "-")).collect()
}

/// The missing parts of an alert: a required field, a section of the page, a test in which the alert fires and a test
/// in which the alert does not fire.
fn lacking(rules: &str, page: &str, tests: &str) -> Vec<String> {
    let anchors = anchors(page);
    let mut lacking = Vec::new();
    for (name, rule) in alerts(rules) {
        lacking.extend(SAID.iter().filter(|said| !rule.contains(**said)).map(|said| format!("{name}: {said}")));
        let url = rule.split_once("runbook_url: ").map_or("", |(_, url)| url.lines().next().unwrap_or_default());
        let (file, anchor) = url.trim_matches(['"', ' ']).split_once('#').unwrap_or_default();
        if !file.ends_with("deploy/docs/alerts.md") || !anchors.contains(anchor) {
            lacking.push(format!("{name}: no such place: {url}"));
        }
        let asked = format!("alertname=\"{name}\",");
        for (what, value) in [("fires", "value: 1"), ("does not fire", "value: 0")] {
            if !tests.lines().any(|line| line.contains(&asked) && line.contains(value)) {
                lacking.push(format!("{name}: no test in which it {what}"));
            }
        }
    }
    lacking
}

#[test]
fn every_alert_has_a_meaning_a_section_of_the_page_and_a_test_that_fires_and_one_that_does_not() {
    let rules = read(RULES);
    assert!(alerts(&rules).len() > 20, "no alerts are found");
    assert_eq!(lacking(&rules, &read(PAGE), &read(TESTS)), [""; 0]);
}

#[test]
fn an_alert_that_lacks_something_is_found() {
    let rule = "- alert: A\n expr: 1\n severity: x\n summary: s\n description: d\n \
                runbook_url: \"deploy/docs/alerts.md#a\"\n";
    let tests = "{alertname=\"A\",} value: 1\n{alertname=\"A\",} value: 0\n";
    assert_eq!(lacking(rule, "## A\n", tests), [""; 0]);
    assert_eq!(lacking(rule, "## B\n", tests), ["A: no such place: \"deploy/docs/alerts.md#a\""]);
    assert_eq!(lacking(rule, "## A\n", "{alertname=\"A\",} value: 1"), ["A: no test in which it does not fire"]);
    assert_eq!(lacking(&rule.replace("summary", "title"), "## A\n", tests), ["A: summary: "]);
}

#[test]
fn prometheus_takes_the_rules_and_every_alert_fires_when_it_should_and_only_then() {
    assert_eq!(promtool::judge(&["check", "rules", RULES], &folder(), ""), Ok(()));
    assert_eq!(promtool::judge(&["test", "rules", TESTS], &folder(), ""), Ok(()));
}

#[test]
fn a_rule_that_cannot_be_read_or_does_not_fire_is_seen() {
    crate::left_out::long!();
    if !promtool::is_there() {
        return;
    }
    let broken = tempfile::tempdir().unwrap();
    let write = |file: &str, text: &str| std::fs::write(broken.path().join(file), text).unwrap();
    write(RULES, &read(RULES).replacen("expr: ", "expr: )", 1));
    assert!(promtool::judge(&["check", "rules", RULES], broken.path(), "").is_err());
    write(TESTS, &read(TESTS));
    let rules = read(RULES);
    let (start, _) = rules.match_indices("- alert: ").next().unwrap();
    let at = start + rules[start..].find("expr: ").unwrap() + "expr: ".len();
    let end = at + rules[at..].find('\n').unwrap();
    write(RULES, &format!("{}vector(0) > 1{}", &rules[..at], &rules[end..]));
    assert_eq!(promtool::judge(&["check", "rules", RULES], broken.path(), ""), Ok(()));
    assert!(promtool::judge(&["test", "rules", TESTS], broken.path(), "").is_err());
}

#[test]
fn every_question_of_the_dashboard_can_be_read_by_prometheus() {
    let expressions = expressions(&read(DASHBOARD));
    assert!(expressions.len() > 15, "no questions are found");
    let rule = |(number, text): (usize, &String)| {
        // The values that Grafana would substitute.
        let text = text.replace("$__rate_interval", "5m").replace("$cluster", "orders");
        format!("      - record: question:{number}\n        expr: {}\n", Value::from(text))
    };
    let rules: String = expressions.iter().enumerate().map(rule).collect();
    let written = tempfile::tempdir().unwrap();
    let judged = |rules: &str| {
        let file = format!("groups:\n  - name: dashboard\n    rules:\n{rules}");
        std::fs::write(written.path().join(RULES), file).unwrap();
        promtool::judge(&["check", "rules", RULES], written.path(), "")
    };
    assert_eq!(judged(&rules), Ok(()));
    if promtool::is_there() {
        assert!(judged(&rules.replacen("expr: \"", "expr: \")", 1)).is_err());
    }
}
