//! The fake cloud of one test, driven by its control interface.

use allclear::fake_cloud::{self, Options, Post, Running};
use serde_json::{Value, json};

pub(crate) struct Cloud {
    running: Running,
    http: reqwest::Client,
}

impl Cloud {
    pub(crate) async fn of(vms: &[&str]) -> Self {
        let running = fake_cloud::serve(Options::new(vms.iter().copied())).await.unwrap();
        Self { running, http: allclear::http_client::plain().unwrap().build().unwrap() }
    }

    pub(crate) fn endpoint(&self, vm: &str) -> String {
        self.running.endpoint(vm).unwrap()
    }

    /// The address of the control plane.
    pub(crate) fn control_plane(&self) -> String {
        self.running.control_plane()
    }

    /// Announces an event and returns its id. Defaults for `order`: the event starts at once when approved, and lasts
    /// until finished.
    pub(crate) async fn announce(&self, order: Value) -> String {
        let mut whole = json!({ "source": "User", "start_delay": 0, "impact": "24h", "linger": 0 });
        whole.as_object_mut().unwrap().extend(order.as_object().unwrap().clone());
        let answer = self.post("/events", &whole).await;
        answer["id"].as_str().unwrap().to_owned()
    }

    /// Approves as a replica on this VM would.
    pub(crate) async fn approve_as(&self, vm: &str, event: &str) {
        let address = format!("{}/metadata/scheduledevents?api-version=2020-07-01", self.endpoint(vm));
        let body = json!({ "StartRequests": [{ "EventId": event }] });
        let answer = self.http.post(address).header("Metadata", "true").json(&body).send().await.unwrap();
        assert!(answer.status().is_success(), "{answer:?}");
    }

    pub(crate) async fn start(&self, event: &str) {
        self.post(&format!("/events/{event}/start"), &json!({})).await;
    }

    pub(crate) async fn finish(&self, event: &str) {
        self.post(&format!("/events/{event}/finish"), &json!({})).await;
    }

    pub(crate) async fn cancel(&self, event: &str) {
        self.post(&format!("/events/{event}/cancel"), &json!({})).await;
    }

    pub(crate) async fn change(&self, event: &str, change: Value) {
        let address = format!("{}/events/{event}", self.running.control());
        read(self.http.patch(address).json(&change).send().await.unwrap()).await;
    }

    /// Switches a fault on; without `vm` the fault applies to all VMs.
    pub(crate) async fn fault(&self, order: Value) {
        self.post("/faults", &order).await;
    }

    pub(crate) async fn clear_faults(&self) {
        let address = format!("{}/faults", self.running.control());
        read(self.http.delete(address).send().await.unwrap()).await;
    }

    pub(crate) async fn clear_faults_of(&self, vm: &str) {
        let address = format!("{}/faults?vm={vm}", self.running.control());
        read(self.http.delete(address).send().await.unwrap()).await;
    }

    /// Clears the faults set for GETs alone.
    pub(crate) async fn clear_faults_of_gets(&self) {
        let address = format!("{}/faults?on=get", self.running.control());
        read(self.http.delete(address).send().await.unwrap()).await;
    }

    /// True if a request of this VM, received since `since` in milliseconds since 1970, met this fault.
    pub(crate) async fn has_answered_with(&self, fault: &str, vm: &str, since: i64) -> bool {
        let address = format!("{}/requests?vm={vm}", self.running.control());
        let answer = read(self.http.get(address).send().await.unwrap()).await;
        let is_late = |at: &str| at.parse::<jiff::Timestamp>().unwrap().as_millisecond() >= since;
        let requests = answer["requests"].as_array().unwrap();
        requests.iter().any(|it| it["fault"] == fault && is_late(it["at"].as_str().unwrap()))
    }

    /// Every announced event, in the current state.
    pub(crate) async fn events(&self) -> Vec<Value> {
        let address = format!("{}/events", self.running.control());
        let answer = read(self.http.get(address).send().await.unwrap()).await;
        answer["events"].as_array().unwrap().clone()
    }

    pub(crate) async fn restart_incarnations(&self) {
        self.post("/incarnation", &json!({})).await;
    }

    /// Every received POST, answered or not.
    pub(crate) async fn posts(&self) -> Vec<Value> {
        let address = format!("{}/requests?method=POST", self.running.control());
        let answer = read(self.http.get(address).send().await.unwrap()).await;
        answer["requests"].as_array().unwrap().clone()
    }

    /// The approvals of one event, as received by the platform.
    pub(crate) fn approvals(&self, event: &str) -> Vec<Post> {
        self.running.posts().into_iter().filter(|post| post.event.as_str() == event).collect()
    }

    /// The VMs from which the POSTs came.
    pub(crate) async fn posted_by(&self) -> Vec<String> {
        self.posts().await.iter().map(|post| post["vm"].as_str().unwrap().to_owned()).collect()
    }

    /// Number of received GETs of events.
    pub(crate) async fn polls(&self, vm: &str) -> usize {
        self.gets(vm).await.len()
    }

    /// Milliseconds of a second by which `vm` polls after `other`; the median of several polls.
    pub(crate) async fn polls_apart(&self, vm: &str, other: &str) -> i64 {
        let of = async |vm| -> Vec<i64> {
            let gets = self.gets(vm).await;
            let at = gets.iter().rev().take(5).map(|get| get["at"].as_str().unwrap().to_owned());
            at.map(|at| at.rsplit_once('.').unwrap().1.trim_end_matches('Z').parse().unwrap()).collect()
        };
        let (own, others) = (of(vm).await, of(other).await);
        let mut apart: Vec<i64> = own.iter().zip(&others).map(|(own, other)| (own - other).rem_euclid(1000)).collect();
        apart.sort_unstable();
        apart[apart.len() / 2]
    }

    /// True if a GET received since `since` still waits for an answer.
    pub(crate) async fn is_polled(&self, vm: &str, since: &str) -> bool {
        let gets = self.gets(vm).await;
        gets.iter().any(|get| get["status"].is_null() && get["at"].as_str().unwrap() >= since)
    }

    /// The received GETs of one VM for events.
    pub(crate) async fn gets(&self, vm: &str) -> Vec<Value> {
        let address = format!("{}/requests?method=GET&vm={vm}", self.running.control());
        let answer = read(self.http.get(address).send().await.unwrap()).await;
        answer["requests"].as_array().unwrap().clone()
    }

    async fn post(&self, path: &str, body: &Value) -> Value {
        let address = format!("{}{path}", self.running.control());
        read(self.http.post(address).json(body).send().await.unwrap()).await
    }
}

async fn read(response: reqwest::Response) -> Value {
    let (status, text) = (response.status(), response.text().await.unwrap());
    assert!(status.is_success(), "the fake cloud refused: {status} {text}");
    serde_json::from_str(&text).unwrap()
}
