//! Trusted servers, and the secrecy of secrets.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::certificates::Authority;
use super::inbox::Inbox;
use super::told::{announce_elsewhere, file, plan, table};

const TOKEN: &str = "Bearer unlikely-token-7";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_https_only_a_receiver_that_the_authority_vouches_for_is_told() {
    let (ours, theirs, folder) = (Authority::new(), Authority::new(), TempDir::new().unwrap());
    let good = Inbox::over_tls(ours.server("127.0.0.1")).await;
    let (stranger, misnamed) =
        (Inbox::over_tls(theirs.server("127.0.0.1")).await, Inbox::over_tls(ours.server("other.example")).await);
    let ca = format!("ca = {:?}", ours.file(folder.path(), "ca.pem"));
    let tables = [("good", &good), ("stranger", &stranger), ("misnamed", &misnamed)];
    let tables: String = tables.iter().map(|(name, inbox)| table(name, &inbox.url, &ca)).collect();
    let cluster = plan(&tables).start().await;
    let (leader, _) = announce_elsewhere(&cluster).await;
    good.has(&["announced"]).await;
    let refused = |name: &str| {
        let why = "invalid peer certificate";
        cluster.log(leader).lines().any(|line| line.contains(name) && line.contains(why))
    };
    cluster.until_true("both refused", async || refused("stranger") && refused("misnamed")).await;
    assert_eq!((stranger.posts().len(), misnamed.posts().len()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_sent_to_their_receiver_are_renewed_and_appear_nowhere_else() {
    let (grid, folder) = (Inbox::open().await, TempDir::new().unwrap());
    let token = file(folder.path(), "token", TOKEN);
    let address = file(folder.path(), "url", &grid.url);
    let tables = format!(
        "[[notify]]\nname = \"grid\"\nurl_file = {address:?}\nheaders = {{ \"X-Team\" = \"databases\" }}\n\
         header_files = {{ \"Authorization\" = {token:?} }}\n"
    );
    let cluster = plan(&tables).start().await;
    cluster.hooks.open("gate");
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-0" })).await;
    let told = grid.has(&["started"]).await;
    assert!(told.iter().all(|post| post.headers["authorization"] == TOKEN && post.headers["x-team"] == "databases"));
    file(folder.path(), "token", "Bearer renewed-token-8");
    cluster.cloud.finish(&id).await;
    let told = grid.has(&["closed"]).await;
    assert_eq!(told.last().unwrap().headers["authorization"], "Bearer renewed-token-8");

    // A receiver without a usable token makes the program log a warning.
    file(folder.path(), "token", "");
    cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-1" })).await;
    let is_told = || (0..3).any(|place| cluster.log(place).contains("token: is empty"));
    cluster.until_true("a warning", async || is_told()).await;
    let config = cluster.configuration(0);
    let output = Command::new(env!("CARGO_BIN_EXE_allclear")).args(["check", "--config"]).arg(config).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.contains(&format!("[notify.header_files]\nAuthorization = {token:?}\n")), "{printed}");
    let doctor = cluster.asks(0, "doctor", &["--json"]).wait_with_output().unwrap();
    let found = String::from_utf8(doctor.stdout).unwrap();
    assert!(found.contains("\"check\":\"notify\"") && found.contains("token: is empty"), "{found}");
    let mut texts = vec![printed, String::from_utf8(output.stderr).unwrap(), found];
    for place in 0..3 {
        texts.push(cluster.log(place));
        texts.push(cluster.page(place, "/v1/status").await.1);
        texts.push(cluster.page(place, "/metrics").await.1);
    }
    for secret in [TOKEN, "unlikely-token", "renewed-token", "/inbox"] {
        assert!(texts.iter().all(|text| !text.contains(secret)), "{secret} is told");
    }
}
