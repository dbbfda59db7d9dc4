//! Pictures of the page, for people to look at: `ALLCLEAR_SCREENSHOTS=folder cargo test --test page screenshots`.

use std::path::{Path, PathBuf};

use serde_json::json;

use super::browser::Browser;
use super::cluster::{Cluster, Plan};
use super::workload::{Hook, hook};

const LOOKS: [(&str, u32, &str); 3] = [("light", 1100, "light"), ("dark", 1100, "dark"), ("phone", 360, "light")];

struct Album {
    browser: Browser,
    folder: PathBuf,
}

impl Album {
    async fn of() -> Option<Self> {
        let folder: PathBuf = std::env::var_os("ALLCLEAR_SCREENSHOTS")?.into();
        std::fs::create_dir_all(&folder).unwrap();
        Some(Self { browser: Browser::start().await?, folder })
    }

    async fn take(&self, cluster: &Cluster, place: usize, name: &str, says: &[&str]) {
        for (look, width, scheme) in LOOKS {
            self.browser.look(width, scheme).await;
            self.browser.open(&format!("{}/", cluster.replicas[place].page)).await;
            self.browser.until_it_says(says).await;
            self.browser.picture(&Path::new(&self.folder).join(format!("{name}-{look}.png"))).await;
        }
    }
}

fn postgres(hooks: Vec<Hook>) -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("postgres", hooks).with_primary("db-1")
}

#[tokio::test(flavor = "multi_thread")]
async fn screenshots_of_a_life() {
    let Some(album) = Album::of().await else { return };
    let hooks = vec![hook("failover"), hook("drain").waits_for("gate"), hook("restore").waits_for("back")];
    let cluster = postgres(hooks).start().await;
    album.take(&cluster, 0, "nothing", &["No maintenance is announced", "primary"]).await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m",
                        "description": "Virtual machine is being redeployed because of degraded hardware." });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    album.take(&cluster, 0, "hook-running", &["runs on db-1."]).await;
    cluster.says(0, &["hold", &id, "--until", "1h", "--reason", "the backup has to end first"]);
    cluster.hooks.open("gate");
    album.take(&cluster, 0, "hold", &["It is held by"]).await;
    cluster.says(0, &["release", &id, "--reason", "it has ended"]);
    album.take(&cluster, 0, "started", &["is under way"]).await;
    let other = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 2 })).await;
    cluster.seen_by_all(&other).await;
    cluster.hooks.open("gate");
    album.take(&cluster, 0, "budget", &["may not lose more members"]).await;
    cluster.cloud.finish(&id).await;
    album.take(&cluster, 0, "restoring", &["is over and being restored"]).await;
    cluster.hooks.open("back");
    cluster.until_stage(0, &other, "started").await;
    cluster.cloud.finish(&other).await;
    album.take(&cluster, 0, "history", &["No maintenance is announced", "completed"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn screenshots_of_failures() {
    let Some(album) = Album::of().await else { return };
    let failing = hook("drain").exits(1, "no standby is within 16 MB of the primary").with("attempts = 2");
    let mut cluster = postgres(vec![hook("checkpoint"), failing]).start().await;
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 1, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    album.take(&cluster, 0, "hook-failed", &["failed: no standby"]).await;
    cluster.kill(2);
    album.take(&cluster, 0, "one-lost", &["db-2 is out of reach"]).await;
    cluster.kill(1);
    album.take(&cluster, 0, "no-quorum", &["No quorum"]).await;
    cluster.kill(0);
    album.browser.until_it_says(&["The connection to db-0 is lost."]).await;
    album.browser.picture(&album.folder.join("not-connected-phone.png")).await;
}
