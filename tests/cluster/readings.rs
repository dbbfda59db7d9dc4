//! The output of `allclear explain`, why an event is not approved yet, from real replicas, for the possible blockers of
//! an event. `ALLCLEAR_BLESS=1` writes the texts anew.

use std::fmt::Write as _;

use allclear::wire::pb::allclear::operator::v1::Event;
use serde_json::json;

use super::cluster::Cluster;
use super::workload::hook;

/// The outputs, without the parts that differ each time.
#[derive(Default)]
struct Readings(String);

impl Readings {
    /// Waits until the event's blocker is `code`, and reads the output from the verdict to the possible actions.
    async fn read(&mut self, cluster: &Cluster, place: usize, id: &str, code: &str) {
        self.read_with(cluster, place, id, (code, &[])).await;
    }

    /// Reads the output only if all of `parts` are in the output too: retried hooks appear and disappear.
    async fn read_with(&mut self, cluster: &Cluster, place: usize, id: &str, (code, parts): (&str, &[&str])) {
        let waits = |event: &Event| {
            let is_known = event.hold.as_ref().is_none_or(|hold| hold.unacknowledged_by.is_empty());
            event.blocker.as_ref().is_some_and(|blocker| {
                blocker.code == code && !blocker.message.contains("not acknowledged") && is_known
            })
        };
        for _ in 0..20 {
            cluster.until_event(place, id, code, waits).await;
            let (status, out, err) = cluster.says(place, &["explain", id]);
            assert_eq!((status, err.as_str()), (0, ""));
            // The event may have another blocker meanwhile, while there is no leader.
            let title = format!("({code})");
            let begin = out.lines().position(|line| line.ends_with(&title));
            let Some(begin) = begin.filter(|_| parts.iter().all(|part| out.contains(part))) else { continue };
            let end = |line: &&str| !["HOOKS", "WHAT HAPPENED"].contains(line);
            for line in out.lines().skip(begin).take_while(end) {
                let line = line.split(" --endpoint ").next().unwrap().replace(id, "ID");
                writeln!(self.0, "{}", without_numbers(&line)).unwrap();
            }
            return;
        }
        panic!("{id} does not go on waiting for {code}");
    }

    fn are_as_written(&self, name: &str) {
        let path = format!("{}/tests/cluster/readings/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("ALLCLEAR_BLESS").is_some() {
            std::fs::write(&path, &self.0).unwrap();
        }
        assert_eq!(self.0, std::fs::read_to_string(&path).unwrap(), "{path}");
    }
}

/// Replaces times, durations and revisions by `~`.
fn without_numbers(line: &str) -> String {
    if line.trim_start().starts_with("allclear ") {
        let (mut told, mut is_value) = (Vec::new(), false);
        for word in line.split(' ') {
            told.push(if is_value && word != "2h" { "~" } else { word });
            is_value = ["--revision", "--until", "--config"].contains(&word);
        }
        return told.join(" ");
    }
    let bare = |word: &str| word.trim_matches(|letter| "(),;:".contains(letter)).to_owned();
    let is_number = |word: &str| {
        let bare = bare(word);
        bare.starts_with(|first: char| first.is_ascii_digit())
            && bare.chars().all(|letter| letter.is_ascii_digit() || ":-".contains(letter))
    };
    let mut told: Vec<String> = Vec::new();
    let mut words = line.split(' ').peekable();
    while let Some(word) = words.next() {
        let follows = told.last().is_some_and(|last| last == "~");
        let is_unit = follows && ["UTC", "s", "min", "h", "d", "ago", "now"].contains(&bare(word).as_str());
        let leads = bare(word) == "in" && words.peek().is_some_and(|next| is_number(next));
        if !is_number(word) && !is_unit && !leads {
            told.push(word.into());
        } else if !follows {
            told.push("~".into());
        }
    }
    told.join(" ")
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_event_of_one_vm_waits_for_is_told_with_what_can_be_done() {
    crate::left_out::long!();
    let rule = "[[policy.rule]]\nname = \"not ours\"\ntype = [\"Freeze\"]\ntreatment = \"observe\"\n";
    let cluster = Cluster::of(&["db-0"])
        .workload("database", vec![hook("drain").waits_for("gate"), hook("restore")])
        .tables(vec![rule.into()])
        .also("policy.prepare_ahead", "15m")
        .start()
        .await;
    let mut readings = Readings::default();
    let far =
        cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "notice": "2h" })).await;
    readings.read(&cluster, 0, &far, "too_early").await;
    cluster.cloud.cancel(&far).await;
    cluster.closed_everywhere(&far).await;
    let freeze = cluster.cloud.announce(json!({ "type": "Freeze", "source": "Platform", "vm": 0 })).await;
    readings.read(&cluster, 0, &freeze, "observing").await;
    cluster.cloud.cancel(&freeze).await;
    cluster.closed_everywhere(&freeze).await;

    let order = json!({ "type": "Reboot", "source": "Platform", "vm": 0, "start_delay": 3_600_000 });
    let id = cluster.cloud.announce(order).await;
    readings.read(&cluster, 0, &id, "hook_running").await;
    cluster.says(0, &["hold", &id, "--until", "1h", "--reason", "the backup has to end first"]);
    readings.read(&cluster, 0, &id, "hold").await;
    cluster.says(0, &["release", &id, "--reason", "it has ended"]);
    cluster.says(0, &["pause", "--until", "1h", "--reason", "the network is being repaired"]);
    readings.read(&cluster, 0, &id, "paused").await;
    cluster.cloud.fault(json!({ "fault": { "kind": "empty" }, "on": "get" })).await;
    cluster.until(0, "blind", |status| status.replicas[0].metadata == "stalled").await;
    cluster.hooks.open("gate");
    let is_done = |event: &Event| event.hooks.iter().any(|hook| hook.outcome.is_some());
    cluster.until_event(0, &id, "prepared", is_done).await;
    cluster.says(0, &["resume", "--reason", "it is repaired"]);
    readings.read(&cluster, 0, &id, "no_healthy_channel").await;
    cluster.cloud.clear_faults().await;
    readings.read(&cluster, 0, &id, "waiting_for_platform").await;
    readings.are_as_written("one_vm");
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_that_hold_an_event_are_told_with_the_command_to_skip_each() {
    let cluster = Cluster::of(&["db-0"])
        .workload("database", vec![hook("drain").exits(75, "a backup is being made")])
        .workload("queue", vec![hook("drain").exits(3, r"no\033[31m \342\200\256standby").with("attempts = 1")])
        .script("#!/bin/sh\nprintf \"$SAYS\\n\" >&2\nexit $EXITS\n")
        .start()
        .await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 0 })).await;
    let mut readings = Readings::default();
    let both = |event: &Event| event.blocker.iter().chain(&event.other_blockers).count() == 2;
    cluster.until_event(0, &id, "held by both", both).await;
    let skips = ["db-0/queue/drain --reason", "db-0/database/drain --reason"];
    readings.read_with(&cluster, 0, &id, ("hook_failed", &skips)).await;
    let (_, all, _) = cluster.says(0, &["explain"]);
    assert!(all.starts_with("Reboot of db-0 by Platform: preparing\n"), "the only one: {all}");
    assert!(!all.contains(['\u{1b}', '\u{202e}']), "{all:?}");
    assert_eq!(cluster.says(0, &["skip", &id, "db-0/queue/drain", "--reason", "there is none"]).0, 0);
    readings.read(&cluster, 0, &id, "hook_blocked").await;
    readings.are_as_written("hooks");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_event_waits_for_in_others_is_told() {
    crate::left_out::long!();
    let mut cluster = Cluster::with_hooks(vec![hook("restore")]).await;
    let order = |vm: usize, notice: &str| json!({ "type": "Reboot", "source": "Platform", "vm": vm, "notice": notice });
    let first = cluster.cloud.announce(order(0, "14m")).await;
    cluster.until_stage(1, &first, "started").await;
    let second = cluster.cloud.announce(order(1, "14m")).await;
    let mut readings = Readings::default();
    readings.read(&cluster, 2, &second, "budget").await;
    let (status, listed, _) = cluster.says(2, &["explain"]);
    assert!(status == 0 && listed.starts_with("2 open events; name one of them:\n"), "{listed}");
    let (_, open, _) = cluster.says(2, &["events", "--open", "--limit", "1", "--json"]);
    let open: serde_json::Value = serde_json::from_str(&open).unwrap();
    assert_eq!(open["events"].as_array().unwrap().len(), 1);
    // Otherwise the remaining replica may first report that the event is yet to be seen there.
    cluster.seen_by_all(&second).await;
    cluster.kill(0);
    cluster.kill(1);
    let tells = |event: &Event, what: &str| event.blocker.as_ref().is_some_and(|it| it.message.contains(what));
    // a replica that answered recently counts as reachable for a while
    let knows = |event: &Event| {
        tells(event, "does not approve the event alone") && tells(event, "db-0 and db-1 are unreachable")
    };
    let is_offered =
        |event: &Event| knows(event) && event.blocker.as_ref().is_some_and(|it| it.isolated_approval.is_some());
    cluster.until_event(2, &second, "its own part, offered to an operator", is_offered).await;
    readings.read(&cluster, 2, &second, "no_quorum").await;
    let (status, shown, _) = cluster.says(2, &["status"]);
    assert!(
        status == 0 && shown.starts_with("db-2 is cut off: cluster tests CANNOT ACT FROM HERE: NO QUORUM"),
        "{shown}"
    );
    let (_, listed, _) = cluster.says(2, &["workload", "list"]);
    let is_unknown = |line: &str| line.contains("unknown") && line.contains("which is unreachable from here");
    let of = |vm: &str| listed.lines().filter(|line| line.starts_with(vm)).map(is_unknown).collect::<Vec<_>>();
    assert!(of("db-0/") == [true] && of("db-2/") == [false], "{listed}");
    readings.0 = readings.0.replace(&first, "FIRST");
    readings.are_as_written("others");
}
