//! Shared parts of the tests of notifications: a cluster with receivers, and properties of every notification.

use std::collections::BTreeMap;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use tempfile::TempDir;

use super::cluster::{Cluster, Plan};
use super::inbox::Post;
use super::workload::{Hook, hook};

/// One `[[notify]]` table.
pub(crate) fn table(name: &str, url: &str, more: &str) -> String {
    format!("[[notify]]\nname = \"{name}\"\nurl = \"{url}\"\nblocked_after = \"1s\"\n{more}\n")
}

/// Three replicas with these tables, and with a hook waiting at a gate. The leader keeps its office: a new leader
/// repeats a notification whose record may be missing.
pub(crate) fn plan(tables: &str) -> Plan {
    plan_of(hook("drain").waits_for("gate"), tables)
}

/// As `plan`, with a hook blocked until the gate is open.
pub(crate) fn blocked_plan(tables: &str) -> Plan {
    plan_of(hook("drain").blocked_until("gate"), tables)
}

fn plan_of(hook: Hook, tables: &str) -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2"]).keeps_its_leader().workload("database", vec![hook]).tables(vec![
        tables
            .to_owned(
            );
        3
    ])
}

/// Announces an event of a follower's VM, which leaves the leader in office.
pub(crate) async fn announce_elsewhere(cluster: &Cluster) -> (usize, String) {
    let leader = cluster.leader(0).await;
    let order = json!({ "type": "Reboot", "vm": format!("db-{}", (leader + 1) % 3) });
    (leader, cluster.cloud.announce(order).await)
}

/// A secret in a file that no other user may read, and its key.
pub(crate) fn secret(folder: &TempDir, name: &str, byte: u8) -> (String, Vec<u8>) {
    let key = vec![byte; 32];
    let path = file(folder.path(), name, &format!("whsec_{}\n", BASE64_STANDARD.encode(&key)));
    (path, key)
}

pub(crate) fn file(folder: &Path, name: &str, text: &str) -> String {
    use std::os::unix::fs::PermissionsExt as _;
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// The number of posts for each id.
pub(crate) fn counted(posts: &[Post]) -> BTreeMap<String, usize> {
    posts.iter().fold(BTreeMap::new(), |mut counts, post| {
        *counts.entry(post.id()).or_default() += 1;
        counts
    })
}

/// Fails unless each id arrived once, with all the required attributes of a cloud event.
pub(crate) fn are_cloud_events_told_once(posts: &[Post]) {
    let repeated: Vec<_> = counted(posts).into_iter().filter(|(_, count)| *count != 1).collect();
    assert!(repeated.is_empty(), "{repeated:?}");
    for post in posts {
        let event = post.json();
        assert_eq!(post.headers["content-type"], "application/cloudevents+json; charset=utf-8");
        assert_eq!((&event["specversion"], &event["source"]), (&"1.0".into(), &"/allclear/tests".into()), "{event}");
        let topic = event["data"]["topic"].as_str().unwrap();
        assert!(event["type"].as_str().unwrap().ends_with(&format!(".{topic}.v1")), "{event}");
        assert!(event["time"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{event}");
        assert!(event["data"]["text"].as_str().unwrap().starts_with("tests: "), "{event}");
    }
}
