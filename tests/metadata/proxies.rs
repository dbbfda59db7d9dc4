//! Proxies of the environment are not used: the service is local to the machine, and refuses forwarded requests.

use std::env;
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use allclear::core::model::id::EventId;
use allclear::imds::Approval;

use super::server::{LIMIT, Server};
use super::{EMPTY, PATIENT, endpoint_at, says};

/// The endpoint; set only in the process that the test starts of itself, with proxies in its environment.
const TARGET: &str = "ALLCLEAR_TEST_METADATA_ENDPOINT";

#[tokio::test]
async fn proxies_of_the_environment_are_not_used() {
    if let Ok(url) = env::var(TARGET) {
        return ask(&url).await;
    }
    let proxy = Server::saying(says(200, EMPTY)).await;
    let service = Server::saying(says(200, EMPTY)).await;
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", crate::own_test!(proxies_of_the_environment_are_not_used)]);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy"] {
        child.env(name, proxy.url());
    }
    for name in ["NO_PROXY", "no_proxy", "REQUEST_METHOD"] {
        child.env_remove(name);
    }
    let child = child.env(TARGET, service.url()).stdin(Stdio::null()).kill_on_drop(true).output();
    let output = tokio::time::timeout(Duration::from_mins(1), child).await.expect("not done in time").unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let target = "/metadata/scheduledevents?api-version=2020-07-01";
    assert_eq!(service.lines(), [format!("GET {target}"), format!("POST {target}")]);
    assert_eq!(proxy.lines(), [""; 0]);
}

async fn ask(url: &str) {
    let endpoint = endpoint_at(url, "2020-07-01", PATIENT);
    endpoint.poll().await.unwrap();
    assert_eq!(endpoint.approve(&EventId::new("A"), LIMIT).await, Approval::Accepted);
}
