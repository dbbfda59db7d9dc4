//! The fields of each api-version, and the requests that are refused.

use reqwest::Method;
use reqwest::header::HeaderValue;
use serde_json::{Value, json};

use crate::fake_cloud::stage::Stage;

const KINDS: [&str; 6] = ["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate", "Hibernate"];

async fn all_kinds(stage: &Stage) {
    for kind in KINDS {
        let event = json!({ "type": kind, "vms": ["db-0", "elsewhere"], "notice": "1h", "duration_s": 9,
                            "description": "what for" });
        stage.announce(event).await;
    }
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["EventType"].as_str()).collect()
}

fn fields(event: &Value) -> Vec<&str> {
    ["Description", "EventSource", "DurationInSeconds"].into_iter().filter(|field| !event[field].is_null()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_version_shows_its_own_types_fields_and_names() {
    let stage = Stage::open(&["db-0"]).await;
    all_kinds(&stage).await;
    let cases: [(&str, usize, &[&str], &str); 7] = [
        ("2017-03-01", 3, &[], "_db-0"),
        ("2017-08-01", 3, &[], "db-0"),
        ("2017-11-01", 4, &[], "db-0"),
        ("2019-01-01", 5, &[], "db-0"),
        ("2019-04-01", 5, &["Description"], "db-0"),
        ("2019-08-01", 5, &["Description", "EventSource"], "db-0"),
        ("2020-07-01", 6, &["Description", "EventSource", "DurationInSeconds"], "db-0"),
    ];
    for (version, shown, extra, name) in cases {
        let reply = stage.ask(Method::GET, &stage.events_url("db-0", version), None).await.unwrap();
        let events = reply.events();
        assert_eq!(kinds(&events), KINDS[..shown], "{version}");
        assert_eq!(fields(&events[0]), extra, "{version}");
        assert_eq!(events[0]["Resources"][0], name, "{version}");
        let date = events[0]["NotBefore"].as_str().unwrap();
        let is_iso = date.len() == 20 && date.ends_with('Z');
        assert_eq!((is_iso, date.ends_with(" GMT")), (version == "2017-03-01", version != "2017-03-01"), "{date}");
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_is_written_as_captures_show_it() {
    let stage = Stage::open(&["db-0"]).await;
    assert_eq!(stage.get("db-0").await.text, r#"{"DocumentIncarnation":1,"Events":[]}"#);
    let id = stage
        .announce(json!({ "id": "4CAEA225-A741-474D-A72E-428C86FCD853", "type": "Reboot", "source": "User",
                                    "vms": [0], "notice": "15m", "impact": "1h" }))
        .await;
    let text = stage.get("db-0").await.text;
    let (head, tail) = text.split_once(r#""NotBefore":""#).expect("NotBefore");
    assert_eq!(
        head,
        concat!(
            r#"{"DocumentIncarnation":2,"Events":[{"EventId":"4CAEA225-A741-474D-A72E-428C86FCD853","#,
            r#""EventStatus":"Scheduled","EventType":"Reboot","ResourceType":"VirtualMachine","Resources":["db-0"],"#
        )
    );
    let (date, tail) = tail.split_once('"').unwrap();
    assert!(date.len() == 29 && date.ends_with(" GMT"), "{date}");
    assert_eq!(tail, r#","Description":"","EventSource":"User","DurationInSeconds":-1}]}"#);
    stage.order(&format!("/events/{id}/start"), json!({})).await;
    let started = stage.get("db-0").await.json();
    assert_eq!(started["DocumentIncarnation"], 3);
    assert_eq!(
        (&started["Events"][0]["EventStatus"], &started["Events"][0]["NotBefore"]),
        (&json!("Started"), &json!(""))
    );
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_versions_are_refused_with_json_that_has_no_events() {
    let stage = Stage::open(&["db-0"]).await;
    let base = format!("{}/metadata/scheduledevents", stage.endpoint("db-0"));
    for query in ["", "?api-version=", "?api-version=latest", "?api-version=2021-02-01", "?version=2020-07-01"] {
        let reply = stage.ask(Method::GET, &format!("{base}{query}"), None).await.unwrap();
        assert_eq!(reply.status, 400, "{query}");
        let body = reply.json();
        assert!(body["error"].is_string() && body["newest-versions"].is_array() && body["Events"].is_null(), "{body}");
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_may_serve_one_version_alone() {
    let stage = Stage::open(&["db-0"]).await;
    for status in [404, 400] {
        let fault = json!({ "kind": "serves", "version": "2019-08-01", "status": status });
        stage.order("/faults", json!({ "fault": fault })).await;
        for (version, expected) in [("2020-07-01", status), ("2019-08-01", 200)] {
            let reply = stage.ask(Method::GET, &stage.events_url("db-0", version), None).await.unwrap();
            assert_eq!(reply.status, expected, "{version}");
        }
        stage.control(Method::DELETE, "/faults", None).await;
    }
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_the_client_has_is_not_sent_again() {
    let stage = Stage::open(&["db-0"]).await;
    let url = stage.events_url("db-0", "2020-07-01");
    let ask = async |mark: Option<HeaderValue>| {
        let mut request = stage.http.get(&url).header("Metadata", "true");
        if let Some(mark) = mark {
            request = request.header("If-None-Match", mark);
        }
        request.send().await.unwrap()
    };
    let first = ask(None).await;
    let mark = first.headers()["etag"].clone();
    assert_eq!(ask(Some(mark.clone())).await.status(), 304);
    assert_eq!(ask(None).await.status(), 200);
    all_kinds(&stage).await;
    let changed = ask(Some(mark.clone())).await;
    assert!(changed.status() == 200 && changed.headers()["etag"] != mark);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_are_checked_from_the_second_version_on() {
    let stage = Stage::open(&["db-0"]).await;
    let plain =
        async |version: &str| stage.http.get(stage.events_url("db-0", version)).send().await.unwrap().status().as_u16();
    assert_eq!(plain("2020-07-01").await, 400);
    assert_eq!(plain("2017-08-01").await, 400);
    assert_eq!(plain("2017-03-01").await, 200);
    let with = async |name: &str, value: &str| {
        let request = stage.http.get(stage.events_url("db-0", "2020-07-01")).header(name, value);
        request.send().await.unwrap().status().as_u16()
    };
    assert_eq!(with("Metadata", "True").await, 200);
    assert_eq!(with("Metadata", "yes").await, 400);
    let forwarded = stage.http.get(stage.events_url("db-0", "2020-07-01")).header("Metadata", "true");
    assert_eq!(forwarded.header("X-Forwarded-For", "10.0.0.1").send().await.unwrap().status(), 400);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_paths_and_verbs_are_refused() {
    let stage = Stage::open(&["db-0"]).await;
    let endpoint = stage.endpoint("db-0");
    for path in ["/", "/metadata", "/metadata/scheduled", "/metadata/latest/scheduledevents", "/control/state"] {
        assert_eq!(stage.ask(Method::GET, &format!("{endpoint}{path}"), None).await.unwrap().status, 404, "{path}");
    }
    for verb in [Method::PUT, Method::DELETE, Method::HEAD, Method::PATCH] {
        let reply = stage.ask(verb.clone(), &stage.events_url("db-0", "2020-07-01"), None).await.unwrap();
        assert_eq!(reply.status, 405, "{verb}");
    }
    let instance = format!("{endpoint}/metadata/instance?api-version=2021-02-01");
    assert_eq!(stage.ask(Method::POST, &instance, None).await.unwrap().status, 405);
    stage.cloud.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_vm_learns_its_own_name_from_the_instance_metadata() {
    let stage = Stage::open(&["db-0", "web_13"]).await;
    let url = |vm: &str| format!("{}/metadata/instance?api-version=2021-02-01", stage.endpoint(vm));
    let compute = stage.ask(Method::GET, &url("web_13"), None).await.unwrap().json()["compute"].clone();
    assert_eq!((&compute["name"], &compute["vmScaleSetName"]), (&json!("web_13"), &json!("web")));
    assert_eq!(stage.ask(Method::GET, &url("db-0"), None).await.unwrap().json()["compute"]["name"], "db-0");
    let without_header = stage.http.get(url("db-0")).send().await.unwrap();
    assert_eq!(without_header.status(), 400);
    let without_version = format!("{}/metadata/instance", stage.endpoint("db-0"));
    assert_eq!(stage.ask(Method::GET, &without_version, None).await.unwrap().status, 400);
    stage.cloud.shutdown().await;
}
