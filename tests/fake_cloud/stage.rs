//! A served fake cloud and all requests of a test, over HTTP as for any client.

use std::time::{Duration, Instant};

use allclear::fake_cloud::{Options, Running, serve};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

/// Longer than any step here takes on a machine under load.
pub(super) const LIMIT: Duration = Duration::from_mins(2);

pub(super) struct Stage {
    pub(super) cloud: Running,
    pub(super) http: reqwest::Client,
}

/// An answer of an endpoint or of the control interface.
#[derive(Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) text: String,
}

impl Reply {
    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// The events of a document.
    #[track_caller]
    pub(super) fn events(&self) -> Vec<Value> {
        assert_eq!(self.status, 200, "{self:?}");
        self.json()["Events"].as_array().expect("a document has Events").clone()
    }
}

impl Stage {
    pub(super) async fn open(vms: &[&str]) -> Self {
        Self::with(Options::new(vms.iter().copied())).await
    }

    pub(super) async fn with(options: Options) -> Self {
        let http = allclear::http_client::plain().expect("a builder of clients");
        let http = http.timeout(LIMIT).pool_max_idle_per_host(0).build().expect("a client");
        Self { cloud: serve(options).await.expect("the fake cloud is served"), http }
    }

    pub(super) fn endpoint(&self, vm: &str) -> String {
        self.cloud.endpoint(vm).expect("the VM has an endpoint")
    }

    pub(super) fn events_url(&self, vm: &str, version: &str) -> String {
        format!("{}/metadata/scheduledevents?api-version={version}", self.endpoint(vm))
    }

    /// A request with the header that the service requires.
    pub(super) async fn ask(&self, method: Method, url: &str, body: Option<Value>) -> Result<Reply, reqwest::Error> {
        let mut request = self.http.request(method, url).header("Metadata", "true");
        if let Some(body) = body {
            request = request.body(body.to_string());
        }
        let answer = request.send().await?;
        Ok(Reply { status: answer.status().as_u16(), text: answer.text().await? })
    }

    pub(super) async fn get(&self, vm: &str) -> Reply {
        self.try_get(vm).await.expect("an answer")
    }

    pub(super) async fn try_get(&self, vm: &str) -> Result<Reply, reqwest::Error> {
        self.ask(Method::GET, &self.events_url(vm, "2020-07-01"), None).await
    }

    pub(super) async fn approve(&self, vm: &str, id: &str) -> Reply {
        self.try_approve(vm, id).await.expect("an answer")
    }

    pub(super) async fn try_approve(&self, vm: &str, id: &str) -> Result<Reply, reqwest::Error> {
        let body = json!({ "StartRequests": [{ "EventId": id }] });
        self.ask(Method::POST, &self.events_url(vm, "2020-07-01"), Some(body)).await
    }

    pub(super) async fn control(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let url = format!("{}{path}", self.cloud.control());
        self.ask(method, &url, body).await.expect("an answer of the control interface")
    }

    /// Sends an order that must succeed.
    #[track_caller]
    pub(super) fn order(&self, path: &str, body: Value) -> impl Future<Output = Value> {
        self.expect(Method::POST, path, Some(body))
    }

    pub(super) async fn read(&self, path: &str) -> Value {
        self.expect(Method::GET, path, None).await
    }

    pub(super) async fn expect(&self, method: Method, path: &str, body: Option<Value>) -> Value {
        let reply = self.control(method, path, body).await;
        assert!(StatusCode::from_u16(reply.status).is_ok_and(|status| status.is_success()), "{path}: {reply:?}");
        reply.json()
    }

    /// Announces an event and returns its id.
    pub(super) async fn announce(&self, event: Value) -> String {
        self.order("/events", event).await["id"].as_str().expect("an id").to_owned()
    }

    pub(super) async fn fault(&self, vm: &str, on: &str, fault: Value) {
        self.order("/faults", json!({ "vm": vm, "on": on, "fault": fault })).await;
    }

    pub(super) async fn fault_once(&self, vm: &str, on: &str, fault: Value) {
        self.order("/faults", json!({ "vm": vm, "on": on, "times": 1, "fault": fault })).await;
    }

    pub(super) async fn clear_faults(&self) {
        self.expect(Method::DELETE, "/faults", None).await;
    }

    /// One event as the control interface shows it.
    pub(super) async fn event(&self, id: &str) -> Value {
        self.read(&format!("/events/{id}")).await
    }

    pub(super) async fn requests(&self, query: &str) -> Vec<Value> {
        self.read(&format!("/requests{query}")).await["requests"].as_array().expect("requests").clone()
    }

    /// Waits until the content of a control path satisfies `is_so`.
    pub(super) async fn until(&self, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let begin = Instant::now();
        loop {
            let shown = self.read(path).await;
            if is_so(&shown) {
                return shown;
            }
            assert!(begin.elapsed() < LIMIT, "{what} did not come: {shown}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

/// A reboot by an administrator, with a long notice: starts at once, and stays Started until finished.
pub(super) fn reboot(vm: &str) -> Value {
    json!({ "type": "Reboot", "source": "User", "vms": [vm], "notice": "15m", "start_delay": 0, "impact": "1h" })
}
