//! Only loopback is served; everything else is rejected with a clear message.

use allclear::fake_cloud::{CloudScenario, Options, serve};

async fn refusal(options: Options) -> String {
    serve(options).await.expect_err("it is refused").to_string()
}

#[tokio::test]
async fn any_address_but_loopback_is_refused() {
    for address in ["0.0.0.0:0", "169.254.169.254:80", "169.254.1.1:0", "10.0.0.4:0", "[::]:0", "[fe80::1]:0"] {
        let listen = address.parse().unwrap();
        let said = refusal(Options { listen, ..Options::new(["db-0"]) }).await;
        assert!(said.contains(address) && said.contains("loopback only") && said.contains("127.0.0.1"), "{said}");
    }
}

#[tokio::test]
async fn loopback_of_both_families_is_served() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let listen = address.parse().unwrap();
        let cloud = serve(Options { listen, ..Options::new(["db-0"]) }).await.unwrap();
        assert!(cloud.address.ip().is_loopback());
        let host = address.trim_end_matches('0');
        assert!(cloud.endpoint("DB-0").unwrap().starts_with(&format!("http://{host}")));
        assert_eq!(cloud.endpoint("db-9"), None);
        cloud.shutdown().await;
    }
}

#[tokio::test]
async fn what_cannot_be_served_is_said_with_a_way_out() {
    let none: [&str; 0] = [];
    assert!(refusal(Options::new(none)).await.contains("--vms"));
    assert!(refusal(Options::new((0..101).map(|n| format!("db-{n}")))).await.contains("1 to 100"));
    assert!(refusal(Options::new(["a/b"])).await.contains("\"a/b\""));
    assert!(refusal(Options::new(["db-0", "_DB-0"])).await.contains("twice"));
    let last = Options { listen: "127.0.0.1:65535".parse().unwrap(), ..Options::new(["db-0"]) };
    assert!(refusal(last).await.contains("65535"));
    let log = Some("/nowhere/at/all/requests.jsonl".into());
    assert!(refusal(Options { log, ..Options::new(["db-0"]) }).await.contains("/nowhere/at/all"));
    let scenario = Some(CloudScenario::find("wave").unwrap());
    let said = refusal(Options { scenario, ..Options::new(["db-0"]) }).await;
    assert!(said.contains("needs 3 VMs and this cloud has 1"), "{said}");
    let first = serve(Options::new(["db-0"])).await.unwrap();
    let said = refusal(Options { listen: first.address, ..Options::new(["db-0"]) }).await;
    assert!(said.contains(&first.address.to_string()) && said.contains("another port"), "{said}");
    first.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ports_are_closed_after_shutdown_even_while_a_request_hangs() {
    use crate::fake_cloud::stage::Stage;
    use serde_json::json;
    let stage = Stage::open(&["db-0"]).await;
    let (endpoint, main) = (stage.endpoint("db-0"), stage.cloud.address);
    stage.fault("db-0", "get", json!({ "kind": "hang" })).await;
    let (url, http) = (stage.events_url("db-0", "2020-07-01"), stage.http.clone());
    let hanging = tokio::spawn(async move { http.get(url).header("Metadata", "true").send().await });
    stage.until("/requests", "the request", |log| log["requests"][0]["fault"] == "hang").await;
    stage.cloud.shutdown().await;
    assert!(hanging.await.unwrap().is_err());
    for address in [endpoint.trim_start_matches("http://"), &main.to_string()] {
        assert!(tokio::net::TcpStream::connect(address).await.is_err(), "{address} is still open");
    }
}
