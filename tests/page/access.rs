//! Blind readers, readers without a mouse, and readers on a phone. The rules are axe-core's.

use std::path::Path;

use serde_json::{Value, json};

use super::browser::Browser;
use super::cluster::Cluster;
use super::workload::hook;

const AXE: &str = "target/page/axe.min.js";
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";

fn axe() -> Option<String> {
    let axe = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(AXE));
    if axe.is_err() {
        crate::left_out::lacks("axe-core");
    }
    axe.ok()
}

/// The violations found by axe-core, by rule name.
async fn findings(browser: &Browser, axe: &str) -> Vec<Value> {
    browser.run(axe).await;
    let found = "const tell = arguments[arguments.length - 1]; axe.run().then((found) => tell(found.violations.map(\
                 (one) => [one.id, one.nodes.map((node) => node.html)])), (error) => tell([String(error)]))";
    browser.finish(found).await.as_array().unwrap().clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_can_be_used_by_everybody() {
    let (Some(axe), Some(browser)) = (axe(), Browser::start().await) else { return };
    let mut cluster = Cluster::with_hooks(vec![hook("failover"), hook("drain").waits_for("gate")]).await;
    let address = format!("{}/", cluster.replicas[0].page);
    browser.open(&address).await;
    browser.until_it_says(&["No maintenance is announced"]).await;
    assert_eq!(findings(&browser, &axe).await, [Value::Null; 0], "nothing announced");

    let long = "a-name-without-end-".repeat(20);
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "description": long, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    for (width, scheme) in [(1100, "light"), (1100, "dark"), (360, "light"), (360, "dark")] {
        browser.look(width, scheme).await;
        browser.open(&address).await;
        browser.until_it_says(&["The drain hook of database on db-0 runs on db-0."]).await;
        browser.run("for (const part of document.querySelectorAll('details')) part.open = true").await;
        assert_eq!(findings(&browser, &axe).await, [Value::Null; 0], "{width} {scheme}");
        let wide = browser.run("return document.documentElement.scrollWidth").await;
        assert!(wide.as_u64().unwrap() <= u64::from(width), "{wide} at {width}");
    }
    cluster.kill(1);
    cluster.kill(2);
    browser.until_it_says(&["is cut off: the cluster cannot act from here"]).await;
    assert_eq!(findings(&browser, &axe).await, [Value::Null; 0], "without a quorum");
    cluster.kill(0);
    browser.until_it_says(&["The connection to db-0 is lost."]).await;
    assert_eq!(findings(&browser, &axe).await, [Value::Null; 0], "not connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_broken_on_purpose_is_found() {
    let (Some(axe), Some(browser)) = (axe(), Browser::start().await) else { return };
    let cluster = Cluster::of(&["db-0"]).start().await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    browser.until_it_says(&["No maintenance is announced"]).await;
    let breaks = "document.documentElement.removeAttribute('lang'); document.body.append(document.createElement('img'));\
                  document.getElementById('summary-title').style.color = document.body.style.background = '#888'";
    browser.run(breaks).await;
    let found = findings(&browser, &axe).await;
    let names: Vec<_> = found.iter().map(|one| one[0].as_str().unwrap()).collect();
    for name in ["html-has-lang", "image-alt", "color-contrast"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_mouse_one_gets_to_the_events_and_keeps_ones_place() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let cluster = Cluster::with_hooks(vec![hook("drain").waits_for("gate")]).await;
    let id = cluster.cloud.announce(json!({ "type": "Redeploy", "vm": 0 })).await;
    cluster.seen_by_all(&id).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    browser.until_it_says(&["The drain hook of database on db-0 runs on db-0."]).await;
    browser.press(TAB).await;
    assert_eq!(browser.run("return document.activeElement.textContent").await, json!("Skip to the events"));
    browser.press(ENTER).await;
    browser.press(TAB).await;
    let here = "return [document.activeElement.nodeName, document.activeElement.parentElement.open]";
    assert_eq!(browser.run(here).await, json!(["SUMMARY", true]));
    browser.press(ENTER).await;
    // the page is redrawn meanwhile
    cluster.hooks.open("gate");
    browser.until_it_says(&["Redeploy of db-0 is under way"]).await;
    assert_eq!(browser.run(here).await, json!(["SUMMARY", false]));
    let spoken = browser.run("return document.getElementById('spoken').textContent").await;
    assert!(spoken.as_str().unwrap().starts_with("Redeploy of db-0 is under way"), "{spoken}");
}
