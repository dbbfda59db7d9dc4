//! A VM that freezes as a whole, longer than the workload's lease, while the VM's own hook runs.

use std::os::unix::fs::symlink;

use allclear::wire::pb::allclear::operator::v1::{Event, Status};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::cluster::Cluster;
use super::embedded::{Database, Manner, Moment, WORKLOAD};
use super::sessions::outcomes;

const FROZEN: usize = 0;
const OTHER: usize = 1;

struct Vm {
    cluster: Cluster,
    database: Database,
    id: String,
    _folder: TempDir,
}

impl Vm {
    /// A VM whose failover is held at `moment`.
    async fn in_the_middle(moment: Moment, order: Value, manner: Manner) -> Self {
        let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).start().await;
        let folder = TempDir::with_prefix("ac").unwrap();
        symlink(cluster.door(FROZEN), folder.path().join("line")).unwrap();
        let database = Database::started(folder.path(), manner);
        let is_here = |status: &Status| status.workloads.iter().any(|each| each.name == WORKLOAD && each.connected);
        cluster.until(OTHER, "visited by the database", is_here).await;
        database.hold(moment);
        let id = cluster.cloud.announce(order).await;
        cluster.seen_by_all(&id).await;
        cluster.until_true("the failover", async || database.is_held()).await;
        Self { cluster, database, id, _folder: folder }
    }

    /// Messages to the replica after the freeze must not be older than the missed messages.
    async fn freeze(&self) {
        self.database.freeze();
        self.cluster.freeze(FROZEN);
        // 3 s without a beat: longer than the lease.
        let is_missed = |status: &Status| !status.replicas[FROZEN].reachable;
        self.cluster.until(OTHER, "aware of the silence", is_missed).await;
    }

    async fn thaw(&self) {
        self.cluster.thaw(FROZEN);
        let is_over = |event: &Event| event.hooks[0].outcome.as_deref() == Some("unknown");
        self.cluster.until_event(OTHER, &self.id, "in doubt", is_over).await;
        self.database.let_go();
        self.database.thaw();
    }

    async fn had_its_effect_once(&self) {
        self.cluster.until_true("its effect", async || self.database.effects(&self.id) > 0).await;
        self.cluster.a_few_polls_later().await;
        assert_eq!(self.database.effects(&self.id), 1);
        assert_eq!(self.cluster.cloud.approvals(&self.id).len(), 1);
    }
}

#[tokio::test]
async fn a_hook_that_was_frozen_with_its_replica_is_not_run_again_but_asked_for() {
    for moment in [Moment::BeforeTheEffect, Moment::AfterTheEffect] {
        let order = json!({ "type": "Reboot", "source": "Platform", "vm": FROZEN });
        let vm = Vm::in_the_middle(moment, order, Manner::Careful).await;
        vm.freeze().await;
        assert_eq!(vm.cluster.cloud.approvals(&vm.id).len(), 0, "nobody knows how it ended");
        vm.thaw().await;
        let event = vm.cluster.until_stage(OTHER, &vm.id, "started").await;
        assert_eq!(event.start_cause.as_deref(), Some("approved"));
        let asked = [("failover", "run", Some("unknown")), ("failover", "confirm", Some("done"))];
        assert_eq!(outcomes(&event), asked, "{moment:?}");
        vm.had_its_effect_once().await;
    }
}

/// The other replicas need not wait for a hanging machine that a user wants restarted.
#[tokio::test]
async fn a_hook_that_was_frozen_while_others_approved_is_not_run_again_either() {
    crate::left_out::long!();
    let order = json!({ "type": "Reboot", "source": "User", "vm": FROZEN });
    let vm = Vm::in_the_middle(Moment::BeforeTheEffect, order, Manner::Careful).await;
    vm.freeze().await;
    let event = vm.cluster.until_stage(OTHER, &vm.id, "started").await;
    assert_eq!(event.start_cause.as_deref(), Some("approved"));
    vm.thaw().await;
    vm.had_its_effect_once().await;
    vm.cluster.cloud.finish(&vm.id).await;
    let event = vm.cluster.closed_everywhere(&vm.id).await;
    assert_eq!(event.hooks.iter().filter(|hook| hook.intent == "run").count(), 1, "{event:#?}");
    vm.had_its_effect_once().await;
}

/// Positive control: the repeated effect is detected.
#[tokio::test]
async fn a_frozen_workload_that_says_without_looking_that_nothing_is_done_has_its_effect_again() {
    crate::left_out::long!();
    let order = json!({ "type": "Reboot", "source": "Platform", "vm": FROZEN });
    let vm = Vm::in_the_middle(Moment::AfterTheEffect, order, Manner::Careless).await;
    vm.freeze().await;
    vm.thaw().await;
    vm.cluster.until_stage(OTHER, &vm.id, "started").await;
    assert_eq!(vm.database.effects(&vm.id), 2);
}
