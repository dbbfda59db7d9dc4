//! Screenshots for people: `ALLCLEAR_SCREENSHOTS=folder cargo test --test processes screenshots` writes pictures of the
//! page and the output of the commands on a terminal, for each blocker and for the situations before and after. Files
//! are named by the blocker's code; for several situations of one blocker, a dash and further words follow. The picture
//! `page.png` is the one in `deploy/docs`; `.github/CONTRIBUTING.md` has the command for this picture alone.

mod hooks;
mod operators;
mod platform;
mod quorum;
mod terminal;

use std::path::PathBuf;

use allclear::wire::pb::allclear::operator::v1::Event;

use super::browser::Browser;
use super::cluster::{Cluster, Plan};
use super::workload::Hook;

const LOOKS: [(&str, u32, &str); 3] = [("light", 1100, "light"), ("dark", 1100, "dark"), ("phone", 360, "light")];
/// Number of retries for a blocker that passes quickly.
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

    /// Takes pictures of a replica whose page shows these texts.
    async fn take(&self, cluster: &Cluster, place: usize, name: &str, says: &[&str]) {
        self.write(name, &terminal::of(cluster, place, None));
        for look in LOOKS {
            self.picture((cluster, place), name, look, says).await;
        }
    }

    /// Takes pictures of a replica while the event waits for the blocker, named by `name` up to the dash, all the time.
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

    /// Takes the picture for `deploy/docs`: the top of a replica's page, down to the commands for the first event.
    async fn take_top(&self, cluster: &Cluster, place: usize, says: &[&str]) {
        self.open((cluster, place), LOOKS[0], says).await;
        self.browser.picture_above("article > details", &self.folder.join("page.png")).await;
    }

    async fn picture(&self, at: (&Cluster, usize), name: &str, look: (&str, u32, &str), says: &[&str]) {
        self.open(at, look, says).await;
        self.browser.picture(&self.folder.join(format!("{name}-{}.png", look.0))).await;
    }

    /// Opens the page of a replica, and waits for these texts.
    async fn open(&self, (cluster, place): (&Cluster, usize), look: (&str, u32, &str), says: &[&str]) {
        let (_, width, scheme) = look;
        self.browser.look(width, scheme).await;
        self.browser.open(&format!("{}/", cluster.replicas[place].page)).await;
        self.browser.until_it_says(says).await;
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.folder.join(format!("{name}.txt")), text).unwrap();
    }
}

async fn message(cluster: &Cluster, place: usize, id: &str) -> Option<String> {
    Some(cluster.event(place, id).await?.blocker?.message)
}

/// Waits until the event has this blocker, and returns the blocker's message.
async fn waits_for(cluster: &Cluster, place: usize, id: &str, code: &str) -> String {
    let waits = |event: &Event| event.blocker.as_ref().is_some_and(|blocker| blocker.code == code);
    cluster.until_event(place, id, code, waits).await.blocker.unwrap().message
}

fn database(hooks: Vec<Hook>) -> Plan {
    Cluster::of(&["db-0", "db-1", "db-2"]).workload("database", hooks).with_primary("db-1")
}
