//! Unreachable replicas: peers of the replica that serves the page, and this replica itself.

use serde_json::json;

use super::browser::Browser;
use super::cluster::Cluster;
use super::workload::hook;

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_without_a_quorum_says_so_and_what_that_means() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let mut cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "source": "Platform", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    browser.until_it_says(&["Redeploy of db-0 is not approved yet"]).await;
    cluster.kill(1);
    cluster.kill(2);
    browser
        .until_it_says(&[
            "db-0 is cut off: the cluster cannot act from here",
            "reaches 1 of 3 voters",
            "may have a quorum and act",
            "bring back db-1 and db-2",
        ])
        .await;
    browser.until_it_says(&["There is no quorum: too few replicas can reach each other", "unreachable"]).await;
    cluster.start(1);
    browser.until_it_says(&["The cluster can act", "2 of 3 voters can be reached", "db-2 is unreachable"]).await;
}

/// The title of the page, the colour of its verdict, and whether the rest is greyed out.
async fn look(browser: &Browser) -> serde_json::Value {
    let script = "
        const of = (selector) => getComputedStyle(document.querySelector(selector));
        const word = (text) => text.replace(/.*rgb\\((\\d+), (\\d+), (\\d+)\\).*/, (_, r, g) => +r > +g ? 'red' : 'green');
        return [document.title, word(of('.summary .label').color), of('#cluster').filter === 'none' ? 'coloured' : 'grey'];";
    browser.run(script).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_whose_replica_is_gone_says_since_when_it_is_old_and_comes_back_by_itself() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let mut cluster = Cluster::with_hooks(vec![]).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    browser.until_it_says(&["Live, from db-0", "No maintenance is announced"]).await;
    cluster.kill(0);
    browser
        .until_it_says(&["Not connected", "The connection to db-0 is lost. The shown status is old: its time is"])
        .await;
    browser.until_it_says(&["Nothing was heard from db-0 since", "Then it said: No maintenance is announced"]).await;
    assert_eq!(look(&browser).await, json!(["✕ Not connected · allclear", "red", "grey"]));
    assert!(!browser.text().await.contains("The cluster can act"));
    cluster.start(0);
    browser.until_it_says(&["Live, from db-0", "All is well"]).await;
    assert_eq!(look(&browser).await, json!(["✓ No maintenance is announced · allclear", "green", "coloured"]));
    // a hanging replica does not close its connections
    cluster.freeze(0);
    browser.until_it_says(&["The connection to db-0 is lost."]).await;
    cluster.thaw(0);
    browser.until_it_says(&["Live, from db-0"]).await;
    assert!(!browser.text().await.contains("is lost"));
}
