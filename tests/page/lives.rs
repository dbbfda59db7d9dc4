//! A whole event, from its announcement to the history.

use std::process::Command;

use serde_json::json;

use super::browser::Browser;
use super::cluster::Cluster;
use super::workload::hook;

/// Copies the command beside its description, as a person does, and runs the command with a replica's socket.
async fn run_as_copied(browser: &Browser, cluster: &Cluster, what: &str) {
    let found = format!(
        "return [...document.querySelectorAll('.commands li')].find(item => item.querySelector('.what').textContent \
         .startsWith({what:?}))?.querySelector('code').textContent"
    );
    // The page draws its commands a moment after the texts above them.
    cluster.until_true(what, async || browser.run(&found).await.is_string()).await;
    let copied = browser.run(&found).await.as_str().unwrap().to_owned();
    let program = env!("CARGO_BIN_EXE_allclear");
    let line = copied.replacen("allclear", &format!("'{program}'"), 1);
    let output = Command::new("sh").args(["-c", &line]).output().unwrap();
    assert!(output.status.success(), "{copied}: {output:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_whole_event_is_shown_without_a_reload_and_its_commands_do_what_they_say() {
    let Some(browser) = Browser::start().await else { return };
    let hooks = vec![hook("failover"), hook("drain").waits_for("gate"), hook("restore").waits_for("back")];
    let cluster = Cluster::with_hooks(hooks).await;
    browser.look(1100, "light").await;
    browser.open(&format!("{}/", cluster.replicas[1].page)).await;
    browser
        .until_it_says(&[
            "No maintenance is announced",
            "The cluster can act",
            "3 of 3 voters",
            "No event has been closed yet",
        ])
        .await;
    browser.until_it_says(&["Group databases", "At most 1 of 3 members may be out of service at once"]).await;
    browser.run("window.unloaded = 'never'").await;

    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    let why = "The drain hook of database on db-0 runs on db-0.";
    browser.until_it_says(&["Redeploy of db-0 is not approved yet", why, "initiated by a user", &id]).await;
    browser
        .until_it_says(&["failover of database on db-0\ndone after", "drain of database on db-0\nhas been running for"])
        .await;
    run_as_copied(&browser, &cluster, "Hold the event").await;
    cluster.hooks.open("gate");
    browser.until_it_says(&["The event is held, until", "An operator, with allclear release"]).await;
    browser.until_it_says(&["Azure starts the event when the notice ends: in"]).await;
    run_as_copied(&browser, &cluster, "End the hold").await;
    browser.until_it_says(&["Redeploy of db-0 is under way", "out of service: Redeploy of db-0"]).await;
    browser
        .until_it_says(&[
            "until fewer members are out of service, no hook stops another member, and no event for another member is approved",
        ])
        .await;
    cluster.cloud.finish(&id).await;
    browser.until_it_says(&["is over and being restored", "restore of database on db-0\nhas been running for"]).await;
    cluster.hooks.open("back");
    browser
        .until_it_says(&["No maintenance is announced", "completed", "started because: approved, all-clear by"])
        .await;
    assert_eq!(browser.run("return window.unloaded").await, json!("never"));
}

/// A cluster whose drain hook fails for a reboot of db-1, and the id of the event; the browser shows the page.
async fn with_failed_hook(browser: &Browser) -> (Cluster, String) {
    let failing = hook("drain").exits(1, "no standby is near enough").with("attempts = 1");
    let cluster = Cluster::with_hooks(vec![failing]).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "source": "Platform", "vm": 1, "notice": "15m" })).await;
    (cluster, id)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hook_that_nobody_waits_for_any_more_is_skipped_as_the_page_says() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let (cluster, id) = with_failed_hook(&browser).await;
    cluster.seen_by_all(&id).await;
    let why = "The drain hook of database on db-1 failed: no standby is near enough.";
    browser.until_it_says(&["Action needed", "Reboot of db-1 is not approved yet", why]).await;
    run_as_copied(&browser, &cluster, "Skip the hook").await;
    browser.until_it_says(&["Under way", "Reboot of db-1 is under way"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_starts_without_a_hook_needs_a_person() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let (cluster, id) = with_failed_hook(&browser).await;
    browser.until_it_says(&["The drain hook of database on db-1 failed"]).await;
    cluster.cloud.start(&id).await;
    let lack = "The event started before the drain of database on db-1 was done. Check that the other members serve";
    browser.until_it_says(&["Action needed", "Reboot of db-1 has started unprepared", lack]).await;
}
