//! What people see, for people to look at: `ALLCLEAR_SCREENSHOTS=folder cargo test --test processes screenshots` writes
//! pictures of the page and what the commands say on a terminal, for each blocker and for what comes before and after.
//! Files are named by the blocker's word; where there are several situations of one, more stands behind a dash.

mod hooks;
mod operators;
mod platform;
mod quorum;
mod terminal;

use std::path::{Path, PathBuf};

use allclear::wire::pb::allclear::operator::v1::Event;

use super::browser::Browser;
use super::cluster::{Cluster, Plan};
use super::workload::Hook;

const LOOKS: [(&str, u32, &str); 3] = [("light", 1100, "light"), ("dark", 1100, "dark"), ("phone", 360, "light")];
/// What passes quickly is looked at again, so often.
const TRIES: usize = 40;

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

    /// Of a replica whose page says this.
    async fn take(&self, cluster: &Cluster, place: usize, name: &str, says: &[&str]) {
        self.write(name, &terminal::of(cluster, place, None));
        for look in LOOKS {
            self.picture((cluster, place), name, look, says).await;
        }
    }

    /// Of a replica to which the event waits for this, the name up to the dash, all the time.
    async fn take_blocker(&self, cluster: &Cluster, place: usize, id: &str, name: &str) {
        let code = name.split('-').next().unwrap();
        for tries in 1.. {
            let before = waits_for(cluster, place, id, code).await;
            let text = terminal::of(cluster, place, Some(id));
            if message(cluster, place, id).await == Some(before) && terminal::agrees(&text, code) {
                self.write(name, &text);
                break;
            }
            assert!(tries < TRIES, "{code} passes too quickly to be read:\n{text}");
        }
        for look in LOOKS {
            for tries in 1.. {
                let before = waits_for(cluster, place, id, code).await;
                self.picture((cluster, place), name, look, &[id]).await;
                if message(cluster, place, id).await == Some(before) {
                    break;
                }
                assert!(tries < TRIES, "{code} passes too quickly for a picture");
            }
        }
    }

    async fn picture(&self, (cluster, place): (&Cluster, usize), name: &str, look: (&str, u32, &str), says: &[&str]) {
        let (look, width, scheme) = look;
        self.browser.look(width, scheme).await;
        self.browser.open(&format!("{}/", cluster.replicas[place].page)).await;
        self.browser.until_it_says(says).await;
        self.browser.picture(&Path::new(&self.folder).join(format!("{name}-{look}.png"))).await;
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(format!("{name}.txt")), text).unwrap();
    }
}

async fn message(cluster: &Cluster, place: usize, id: &str) -> Option<String> {
    Some(cluster.event(place, id).await?.blocker?.message)
}

/// Until the event waits for that; and how that is told.
async fn waits_for(cluster: &Cluster, place: usize, id: &str, code: &str) -> String {
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == code);
    cluster.until_event(place, id, code, waits).await.blocker.unwrap().message
}

fn database(hooks: Vec<Hook>) -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).with_primary("db-1")
}
