//! A wave of maintenance over all members of a group, announced at once: the moves of the primary meanwhile.

use allclear::wire::pb::allclear::operator::v1::Status;

use super::cluster::Cluster;
use super::members::{THREE, most_stopped, play, reboot};
use super::workload::{Hook, hook};

/// A database whose primary is named by a file. A failover moves the primary to the best target, and logs the move; a
/// shutdown logs the number of stopped members by then, and whether the stopped member was the primary.
const SCRIPT: &str = r#"#!/bin/sh
stopped="$FOLDER/stopped-$ALLCLEAR_VM"
primary=$(cat "$FOLDER/primary")
say() {
    [ -z "$ALLCLEAR_ATTEMPT" ] ||
        echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE $1 $ALLCLEAR_INTENT $ALLCLEAR_ATTEMPT" >> "$FOLDER/hooks.log"
}
say begin
case "$ALLCLEAR_PHASE" in
failover)
    [ "$primary" = "$ALLCLEAR_VM" ] || exit 11
    next=${ALLCLEAR_PREFER_VMS%% *}
    [ -n "$next" ] || { echo "nowhere to go" >&2; exit 75; }
    echo "$next" > "$FOLDER/next-$ALLCLEAR_VM"
    mv "$FOLDER/next-$ALLCLEAR_VM" "$FOLDER/primary"
    say "moved to $next"
    ;;
shutdown)
    [ "$primary" != "$ALLCLEAR_VM" ] || say "stopped the primary"
    : > "$stopped"
    set -- "$FOLDER"/stopped-*
    say "stopped $#"
    ;;
restore) rm -f "$stopped" ;;
ready) [ ! -e "$stopped" ] || { echo "it is stopped" >&2; exit 1; } ;;
esac
say end
"#;

fn hooks() -> Vec<Hook> {
    ["failover", "shutdown", "restore", "ready"].map(hook).into()
}

/// Every event is approved before its notice ends, one member is out at a time, and the primary moves at most
/// `moves_at_most` times.
async fn goes_through(vms: &[&'static str], moves_at_most: usize) {
    let plan = Cluster::of(vms).script(SCRIPT).workload("database", hooks()).may_lose(1, "database");
    let cluster = plan.with_primary("db-0").start().await;
    let are_known = |status: &Status| status.workloads.iter().all(|each| each.role != "unknown");
    cluster.until(0, "told of the roles", are_known).await;
    let orders: Vec<_> = (0..vms.len()).map(|vm| reboot("Platform", &[vm], "10m")).collect();
    for event in play(&cluster, &orders).await {
        assert_eq!(event.start_cause.as_deref(), Some("approved"), "{event:#?}");
    }
    let written = cluster.hooks.written();
    assert_eq!(most_stopped(&cluster), 1, "{written}");
    assert!(!written.contains("stopped the primary"), "{written}");
    let moves = written.matches(" moved to ").count();
    assert!((1..=moves_at_most).contains(&moves), "{moves} moves: {written}");
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_wave_over_three_members_the_primary_moves_twice_at_the_most() {
    goes_through(&THREE, 2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_wave_over_a_pair_the_primary_moves_twice_at_the_most() {
    crate::left_out::long!();
    goes_through(&["db-0", "db-1"], 2).await;
}
