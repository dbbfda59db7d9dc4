//! Made-up events through the real hooks.

use std::process::Child;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::Phase::{Check, Checkpoint, Drain, Restore};
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::dialled::{self, Dialled};
use super::operators::at_a_terminal;
use super::workload::{hook, usual_hooks};

/// How a drill ended: exit status, standard output, standard error.
async fn ended(drill: Child) -> (i32, String, String) {
    let output = tokio::task::spawn_blocking(move || drill.wait_with_output().unwrap()).await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Id of the drill that is open on a replica.
async fn begun(cluster: &Cluster, place: usize) -> String {
    let is_drill = |event: &Event| event.drill.is_some();
    let status = cluster.until(place, "drilling", |status| status.events.iter().any(is_drill)).await;
    status.events.into_iter().find(is_drill).unwrap().id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rehearsal_runs_every_hook_puts_all_back_and_posts_nothing() {
    let cluster = Cluster::with_hooks(usual_hooks()).await;
    // Nobody can tell the primary, and a failover runs then, too.
    let (code, _, said) = ended(cluster.asks(1, "drill", &["Reboot", "--vm", "_DB-0", "--json"])).await;
    assert!(code == 2 && said.contains("may hold the primary"), "{said}");
    let drill = cluster.asks(1, "drill", &["Reboot", "--vm", "db-0", "--json", "--yes"]);
    let (code, out, said) = ended(drill).await;
    assert_eq!(code, 0, "{out}{said}");
    let told: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&told["outcome"], &told["drill"]["mode"]), (&json!("drilled"), &json!("rehearsal")));
    let steps = told["drill"]["steps"].as_array().unwrap();
    assert!(steps.iter().all(|step| step["result"] == "done" && step["vm"] == "db-0"), "{out}");
    let rehearsed = |phase: &str| (phase.to_owned(), "rehearsal".to_owned());
    let phases = ["checkpoint", "failover", "drain", "shutdown", "restore"];
    assert_eq!(cluster.hooks.modes(), phases.map(rehearsed));
    cluster.a_few_polls_later().await;
    let event = cluster.closed_everywhere(told["id"].as_str().unwrap()).await;
    assert!(event.approvals.is_empty() && event.seen_by.is_empty(), "{event:#?}");
    assert_eq!(cluster.cloud.posts().await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_runs_only_what_declares_it_and_names_the_rest() {
    let drain = hook("drain").with("dry_run = true").exits(0, "would move 2 clients");
    let cluster = Cluster::with_hooks(vec![hook("checkpoint"), drain, hook("restore")]).await;
    let drill = cluster.asks(0, "drill", &["Redeploy", "--vm", "db-2", "--source", "User", "--dry-run"]);
    let (code, out, said) = ended(drill).await;
    assert_eq!(code, 0, "{out}{said}");
    assert_eq!(cluster.hooks.modes(), [("drain".to_owned(), "dry_run".to_owned())]);
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split_whitespace().take(4).collect()).collect();
    for row in [
        ["drain", "database", "db-2", "done"],
        ["checkpoint", "database", "db-2", "would_run"],
        ["restore", "database", "db-2", "would_run"],
    ] {
        assert!(rows.contains(&row.into()), "{out}");
    }
    assert!(out.contains("would move 2 clients"), "{out}");
    let id = out.split(':').next().unwrap();
    let (_, told, _) = cluster.says(0, &["explain", id]);
    assert!(
        told.contains(": would move 2 clients\n") && told.contains("checkpoint of database on db-2: would run"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_checks_first_and_says_what_is_wrong() {
    let hooks = vec![hook("check").exits(1, "no right to switch"), hook("failover").with("dry_run = true")];
    let cluster = Cluster::with_hooks(hooks).await;
    let (code, out, said) = ended(cluster.asks(0, "drill", &["Reboot", "--vm", "db-1", "--dry-run"])).await;
    assert_eq!(code, 1, "{out}{said}");
    assert!(out.contains("no right to switch"), "{out}");
    let dry = |phase: &str| (phase.to_owned(), "dry_run".to_owned());
    assert_eq!(cluster.hooks.modes(), [dry("check"), dry("check")]);
    // No real event waits for the drill.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 1 })).await;
    cluster.until_stage(0, &id, "started").await;
    let begun = cluster.hooks.begun();
    assert!(!begun[2..].contains(&"check".to_owned()), "{begun:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_event_ends_a_drill_and_is_approved_once() {
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let drill = cluster.asks(2, "drill", &["Reboot", "--vm", "db-0"]);
    let rehearsed = begun(&cluster, 1).await;
    cluster.until_true("the rehearsal", async || cluster.hooks.begun() == ["drain"]).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 1 })).await;
    let (code, out, said) = ended(drill).await;
    assert_eq!(code, 1, "{out}{said}");
    assert!(out.contains("interrupted") && out.contains("NOT every hook ended well"), "{out}");
    cluster.hooks.open("gate");
    cluster.until_stage(0, &id, "started").await;
    cluster.cloud.finish(&id).await;
    assert_eq!(cluster.closed_everywhere(&id).await.outcome.as_deref(), Some("completed"));
    assert_eq!(cluster.closed_everywhere(&rehearsed).await.outcome.as_deref(), Some("interrupted"));
    let restored = cluster.hooks.begun().into_iter().filter(|phase| phase == "restore").count();
    assert_eq!(restored, 2);
    assert_eq!(cluster.cloud.posts().await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_goes_on_under_another_leader_and_is_ended_by_an_operator() {
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate"), hook("restore")]).await;
    let leader = cluster.leader(0).await;
    let [asked, vm] = [1, 2].map(|more| (leader + more) % 3);
    let drill = cluster.asks(asked, "drill", &["Reboot", "--vm", &format!("db-{vm}")]);
    let id = begun(&cluster, asked).await;
    cluster.until_true("the rehearsal", async || cluster.hooks.begun() == ["drain"]).await;
    let (_, shown, _) = cluster.says(vm, &["status"]);
    assert!(shown.contains(&format!("{id} (DRILL, rehearsal) Reboot")), "{shown}");
    let (code, _, said) = ended(cluster.asks(asked, "drill", &["Freeze", "--vm", "db-0"])).await;
    assert!(code == 4 && said.contains("another drill is open"), "{code}: {said}");
    cluster.kill(leader);
    let former = format!("db-{leader}");
    let is_led = |status: &Status| status.quorum && status.leader.as_ref().is_some_and(|leader| *leader != former);
    cluster.until(asked, "led by another replica", is_led).await;
    let (code, out, said) = ended(cluster.asks(vm, "drill", &["--end", &id])).await;
    assert_eq!((code, out.as_str()), (0, ""), "{said}");
    let (code, out, said) = ended(drill).await;
    assert!(code == 1 && out.contains("interrupted"), "{code}: {out}{said}");
    assert_eq!(cluster.hooks.begun(), ["drain", "restore"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_cannot_be_is_refused_with_its_reason() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    for (arguments, exit, why) in [
        (&["Reboot"][..], 2, "a drill of Reboot needs a VM: add --vm NAME"),
        (&["Rebot", "--vm", "db-0"], 2, "Rebot: cannot be read"),
        (&["Reboot", "--vm", "db-0", "--source", "Me"], 2, "\"Me\" is unknown; a drill has one of: Platform, User"),
        (&["Reboot", "--vm", "db-10"], 4, "no VM of this cluster is named db-10"),
        (&["--end", "drill-1"], 4, "there is no open drill drill-1"),
    ] {
        let (code, _, said) = ended(cluster.asks(0, "drill", arguments)).await;
        assert!(code == exit && said.contains(why), "{arguments:?} exits with {code}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_that_dialled_in_takes_part_and_is_told_that_it_is_a_drill() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let dry = pb::Hook { can_dry_run: true, ..dialled::hook(Drain) };
    let hooks = vec![dialled::hook(Checkpoint), dry, dialled::hook(Restore), dialled::hook(Check)];
    let mut database = Dialled::at(&cluster.door(0), dialled::hello("database", hooks)).await;
    for (flags, mode, phases) in [
        (&["--dry-run"][..], pb::Mode::DryRun, &[Check, Drain][..]),
        (&[], pb::Mode::Rehearsal, &[Checkpoint, Drain, Restore]),
    ] {
        let drill = cluster.asks(0, "drill", &[&["Reboot", "--vm", "db-0"], flags].concat());
        for phase in phases {
            assert_eq!(database.does(*phase).await.mode(), mode);
        }
        let (code, out, said) = ended(drill).await;
        assert_eq!(code, 0, "{out}{said}");
    }
    cluster.a_few_polls_later().await;
    assert_eq!(cluster.cloud.posts().await, [] as [Value; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drill_that_moves_a_primary_asks_first_and_says_where_it_stays() {
    let cluster = Cluster::of(&["db-0", "db-1"])
        .workload("database", vec![hook("failover"), hook("restore")])
        .with_primary("db-0")
        .start()
        .await;
    let is_known = |status: &Status| status.workloads.iter().any(|workload| workload.role == "primary");
    cluster.until(1, "which is the primary", is_known).await;
    let (code, _, said) = ended(cluster.asks(1, "drill", &["Reboot", "--vm", "db-0"])).await;
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("db-0 holds the primary of databases") && said.contains("--yes"), "{said}");
    assert_eq!(cluster.hooks.begun(), [""; 0]);

    let command = "drill Reboot --vm db-0";
    let (code, said) = at_a_terminal(&cluster, 1, command, "n");
    assert!(said.contains("It stays where the failover puts it") && said.contains("a dry run"), "{code:?} {said}");
    assert_eq!(cluster.hooks.begun(), [""; 0]);
    let (code, said) = at_a_terminal(&cluster, 1, command, "y");
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(cluster.hooks.begun(), ["failover", "restore"]);
    let (code, out, said) = ended(cluster.asks(1, "drill", &["Reboot", "--vm", "db-0", "--yes"])).await;
    assert_eq!(code, 0, "{out}{said}");
    // These hooks move nothing.
    assert!(said.contains("the primary of databases is on db-0 now"), "{said}");
    // Without a primary there is nothing to ask.
    let (code, out, said) = ended(cluster.asks(1, "drill", &["Reboot", "--vm", "db-1"])).await;
    assert_eq!(code, 0, "{out}{said}");
}
