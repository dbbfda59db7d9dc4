//! Names and texts with markup and scripts, which the page must show as text.

use serde_json::json;

use super::browser::Browser;
use super::cluster::Cluster;
use super::said::hostile_service;
use super::workload::hook;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_said_from_outside_is_only_ever_text() {
    let Some(browser) = Browser::start().await else { return };
    let evil = r#"<script>window.caught = 1</script><img src=x onerror="window.caught = 2"> "quoted" 'too' &lt;"#;
    let failing = hook("drain").exits(1, "<script>window.caught = 3</script>").with("attempts = 1");
    let cluster = Cluster::with_hooks(vec![failing]).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    browser.until_it_says(&["No maintenance is announced"]).await;
    let described = format!("{evil} \u{202e}backwards\u{202c}\u{0}\u{7}");
    let order = json!({ "type": "Redeploy", "source": "Platform", "vm": 0, "description": described, "notice": "15m" });
    let id = cluster.cloud.announce(order).await;
    cluster.seen_by_all(&id).await;
    browser.until_it_says(&[evil, "⟨U+202E⟩backwards⟨U+202C⟩", "failed: <script>window.caught = 3</script>"]).await;
    let (code, _, err) = cluster.says(1, &["hold", &id, "--until", "1h", "--reason", &format!("{evil}\u{202e}")]);
    assert_eq!(code, 0, "{err}");
    browser.until_it_says(&["Held", "The event is held, until", "&lt;⟨U+202E⟩"]).await;
    let strangers = "return [window.caught ?? null, document.images.length, document.scripts.length, document.title]";
    let strangers = browser.run(strangers).await;
    assert_eq!((&strangers[0], &strangers[1], &strangers[2]), (&json!(null), &json!(0), &json!(1)), "{strangers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_events_and_vms_are_only_ever_text_and_nothing_to_copy() {
    let Some(browser) = Browser::start().await else { return };
    let endpoint = hostile_service();
    let plan =
        Cluster::of(&["db-0"]).workload("data<s>base", vec![hook("shutdown").exits(1, "no").with("attempts = 1")]);
    let mut cluster = plan.environments(vec![vec![("ALLCLEAR__METADATA__ENDPOINT", endpoint)]]).cold().await;
    cluster.start_all();
    cluster.until(0, "led", |status| status.quorum).await;
    browser.open(&format!("{}/", cluster.replicas[0].page)).await;
    let seen = ["../e?#%2e⟨U+001B⟩[2j", "<script>'⟨U+202E⟩", "vm⟨U+001B⟩]0;owned", "data<s>base"];
    browser.until_it_says(&seen).await;
    browser.until_it_says(&["letters that should not be copied into a shell"]).await;
    let strangers = browser
        .run("return [document.images.length, document.scripts.length, document.querySelectorAll('s').length]")
        .await;
    assert_eq!(strangers, json!([0, 1, 0]));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_browser_is_told_to_take_nothing_from_elsewhere() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let http = allclear::http_client::plain().unwrap().build().unwrap();
    let address = &cluster.replicas[0].page;
    let page = http.get(format!("{address}/")).send().await.unwrap();
    let header = |name: &str| page.headers()[name].to_str().unwrap().to_owned();
    let policy = header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{policy}");
    assert_eq!((header("x-content-type-options"), header("referrer-policy")), ("nosniff".into(), "no-referrer".into()));
    for path in ["/", "/v1/status", "/nowhere"] {
        let answer = http.post(format!("{address}{path}")).body("{}").send().await.unwrap();
        assert_eq!((answer.status().as_u16(), &answer.headers()["allow"]), (405, &"GET, HEAD".parse().unwrap()));
    }
    assert_eq!(http.head(format!("{address}/v1/status")).send().await.unwrap().status(), 200);
}

/// DNS rebinding: a foreign name resolves to the replica's address.
#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_a_name_that_is_made_to_lead_here_reads_nothing() {
    crate::left_out::long!();
    let Some(browser) = Browser::start().await else { return };
    let cluster = Cluster::of(&["db-0"]).start().await;
    let own = &cluster.replicas[0].page;
    let port = own.rsplit(':').next().unwrap();
    browser.open(&format!("http://rebound.example:{port}/")).await;
    browser.until_it_says(&["has no such host name"]).await;
    let asks = |address: &str, how: &str| {
        let answered = "async (answer) => tell([answer.status, await answer.text()])";
        let asking =
            format!("fetch('{address}/v1/status', {how}).then({answered}, (error) => tell([-1, String(error)]))");
        format!("const tell = arguments[arguments.length - 1]; {asking}")
    };
    let rebound = browser.finish(&asks("", "{}")).await;
    assert!(rebound[0] == 421 && !rebound[1].as_str().unwrap().contains("db-0"), "{rebound}");
    for how in ["{}", "{ mode: 'no-cors' }"] {
        let across = browser.finish(&asks(own, how)).await;
        assert_eq!(across[0], -1, "{how}: {across}");
    }
    browser.open(&format!("{own}/")).await;
    browser.until_it_says(&["No maintenance is announced"]).await;
}
