//! The whole course of an event, as notified to receivers.

use std::collections::BTreeMap;

use ring::hmac;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::inbox::{Inbox, Mood, Post};
use super::told::{announce_elsewhere, are_cloud_events_told_once, blocked_plan, counted, plan, secret, table};

const LIFE: [&str; 5] = ["announced", "blocked", "all_clear", "started", "closed"];

/// Verifies as a receiver does; the crate that made the signature is used only for the digest.
fn is_signed(post: &Post, key: &[u8]) -> bool {
    use base64::Engine as _;
    let header = |name: &str| post.headers[name].clone();
    let signed = [header("webhook-id"), header("webhook-timestamp"), String::new()].join(".");
    let signature = header("webhook-signature").strip_prefix("v1,").unwrap().to_owned();
    let tag = base64::prelude::BASE64_STANDARD.decode(signature).unwrap();
    let bytes = [signed.as_bytes(), &post.body].concat();
    hmac::verify(&hmac::Key::new(hmac::HMAC_SHA256, key), &bytes, &tag).is_ok()
}

/// The id of an event from its announcement to its end, and the VM of the event.
async fn live(cluster: &Cluster, grid: &Inbox) -> (String, String) {
    let (leader, id) = announce_elsewhere(cluster).await;
    let is_blocked = |posts: &[Post]| posts.iter().any(|post| post.id().contains("/blocked/hook_blocked/"));
    grid.until("a hook that blocks", is_blocked).await;
    cluster.hooks.open("gate");
    cluster.until_stage(1, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    (id, format!("db-{}", (leader + 1) % 3))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_receiver_is_told_a_whole_life_once_though_three_replicas_could_tell_it() {
    let (grid, chat, folder) = (Inbox::open().await, Inbox::open().await, TempDir::new().unwrap());
    let (file, key) = secret(&folder, "grid.key", 7);
    let tables = table("grid", &grid.url, &format!("secret_file = \"{file}\""))
        + &table("chat", &chat.url, "format = \"slack\"\ntopics = [\"announced\", \"all_clear\", \"closed\"]");
    let page = "\"https://status.example.com/\"";
    let cluster = blocked_plan(&tables).also("status.url", page).start().await;
    let (id, vm) = live(&cluster, &grid).await;
    grid.has(&LIFE).await;
    let told = grid.has(&["resolved"]).await;
    let chatted = chat.until("all of it", |posts| posts.len() >= 3).await;
    // Any replica that would repeat a notification has had the time to.
    cluster.a_few_polls_later().await;
    assert_eq!(chat.posts().len(), 3);
    are_cloud_events_told_once(&grid.posts());
    assert!(told.iter().all(|post| is_signed(post, &key)));
    assert!(!is_signed(&told[0], b"another key"));
    let topics: Vec<String> = told.iter().map(Post::topic).collect();
    let places: Vec<_> = LIFE.map(|topic| topics.iter().position(|it| it == topic).unwrap()).into();
    assert!(places.is_sorted(), "{topics:?}");
    let of = |topic: &str| told.iter().find(|post| post.id().ends_with(topic)).unwrap().json();
    let blocked = of(&format!("/blocked/hook_blocked/{vm}/database/drain"));
    assert_eq!(blocked["subject"], id);
    let text = blocked["data"]["text"].as_str().unwrap();
    let why = format!("needs a person: the drain hook of database on {vm} is blocked: gate is closed");
    let help = format!("Run `allclear explain {id}` on one of the VMs, or open https://status.example.com/");
    assert!(text.contains(&why) && text.ends_with(&help), "{text}");
    let resolved = of("/resolved");
    let text = resolved["data"]["text"].as_str().unwrap();
    assert_eq!((&resolved["data"]["resolves"], &resolved["subject"]), (&blocked["id"], &blocked["subject"]));
    assert!(text.contains("no longer waits because of hook blocked"), "{text}");
    let all_clear = of("/all_clear");
    let approval = all_clear["data"]["event"]["approvals"][0].clone();
    assert_eq!((&approval["reason"], &approval["outcome"]), (&"prepared".into(), &"accepted".into()), "{approval}");
    assert_eq!(of("/closed")["data"]["event"]["outcome"], "completed");

    let said: Vec<String> = chatted.iter().map(|post| post.json()["text"].as_str().unwrap().to_owned()).collect();
    for (text, wanted) in said.iter().zip(["is announced by User", "gave the all-clear", "is over"]) {
        assert!(text.contains(wanted) && text.contains(&id), "{said:?}");
    }
    assert_eq!(chatted[0].headers["content-type"], "application/json");
    assert!(!chatted[0].headers.contains_key("webhook-signature"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_starts_without_its_hook_is_not_told_as_resolved() {
    crate::left_out::long!();
    let grid = Inbox::open().await;
    let tables = table("grid", &grid.url, "topics = [\"blocked\", \"resolved\"]");
    let cluster = blocked_plan(&tables).start().await;
    let (leader, id) = announce_elsewhere(&cluster).await;
    let blocked = grid.until("a hook that blocks", |posts| !posts.is_empty()).await.remove(0).json();
    cluster.cloud.start(&id).await;
    let told = grid.has(&["unresolved"]).await;
    are_cloud_events_told_once(&told);
    assert!(told.iter().all(|post| post.topic() != "resolved"), "{:?}", counted(&told));
    let data = told.last().unwrap().json()["data"].clone();
    assert_eq!((&data["leaves_unresolved"], &data["resolves"]), (&blocked["id"], &serde_json::Value::Null));
    let lack = format!("has started although db-{}/database/drain was not done", (leader + 1) % 3);
    let text = data["text"].as_str().unwrap();
    assert!(text.contains(&lack), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_that_is_killed_while_it_tells_leaves_it_to_the_next_under_the_same_id() {
    crate::left_out::long!();
    let grid = Inbox::open().await;
    let mut cluster = plan(&table("grid", &grid.url, "")).start().await;
    grid.is_in(Mood::Hangs);
    let (leader, id) = announce_elsewhere(&cluster).await;
    let begun = grid.until("the first notice", |posts| !posts.is_empty()).await;
    assert_eq!(begun[0].topic(), "announced");
    assert_eq!(begun[0].json()["data"]["told_by"], format!("db-{leader}"));
    cluster.kill(leader);
    grid.is_in(Mood::Takes);
    let told = grid.has(&["announced", "takeover"]).await;
    let announced: Vec<_> = told.iter().filter(|post| post.topic() == "announced").collect();
    assert_eq!(announced[0].id(), begun[0].id());
    assert_ne!(announced[0].json()["data"]["told_by"], begun[0].json()["data"]["told_by"]);
    let takeover = told.iter().find(|post| post.topic() == "takeover").unwrap().json();
    assert!(takeover["data"]["text"].as_str().unwrap().contains("the previous leader was unreachable"), "{takeover}");

    cluster.start(leader);
    cluster.hooks.open("gate");
    cluster.until_stage(leader, &id, "started").await;
    cluster.cloud.finish(&id).await;
    cluster.closed_everywhere(&id).await;
    let told = grid.has(&["announced", "all_clear", "started", "closed"]).await;
    are_cloud_events_told_once(&told);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_told_is_not_told_again_by_a_leader_that_was_chosen_or_by_replicas_that_start_anew() {
    let grid = Inbox::open().await;
    let mut cluster = blocked_plan(&table("grid", &grid.url, "")).start().await;
    let (id, _) = live(&cluster, &grid).await;
    grid.has(&LIFE).await;
    let is_noted = async || {
        let of_the_end = |line: &str| {
            line.contains("delivery recorded") && line.contains(&format!("{id}@")) && line.contains("/closed")
        };
        (0..3).any(|place| cluster.log(place).lines().any(of_the_end))
    };
    cluster.until_true("a note of it", is_noted).await;
    let before = counted(&grid.taken());
    for place in 0..3 {
        cluster.stop(place);
    }
    cluster.start_all();
    cluster.ready().await;
    cluster.a_few_polls_later().await;
    let after = counted(&grid.taken());
    let of_event = |counts: &BTreeMap<String, usize>| -> Vec<usize> {
        counts.iter().filter(|(notice, _)| notice.starts_with(&id)).map(|(_, count)| *count).collect()
    };
    assert!(of_event(&before).len() >= LIFE.len() && of_event(&before).iter().all(|count| *count == 1), "{before:?}");
    // The end of the wait may be told after the restart only.
    assert!(of_event(&after).len() >= of_event(&before).len(), "{before:?} {after:?}");
    assert!(of_event(&after).iter().all(|count| *count == 1), "{after:?}");
}
