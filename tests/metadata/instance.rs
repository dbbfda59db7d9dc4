//! The VM's own name.

use serde_json::json;

use allclear::metadata::NoInformation;

use super::server::Server;
use super::{endpoint, says};

#[tokio::test]
async fn name_zone_fault_domain_and_scale_set_are_read() {
    let compute = json!({
        "name": "web_13", "zone": "2", "platformFaultDomain": "0", "vmScaleSetName": "web",
        "osProfile": { "computerName": "web00000D" }
    });
    let server = Server::saying(says(200, json!({ "compute": compute, "network": {} }).to_string())).await;
    let instance = endpoint(&server).instance().await.unwrap();
    assert_eq!(instance.name.as_str(), "web_13");
    assert_eq!(instance.zone.as_deref(), Some("2"));
    assert_eq!(instance.fault_domain.as_deref(), Some("0"));
    assert_eq!(instance.scale_set.as_deref(), Some("web"));
    assert_eq!(server.lines(), ["GET /metadata/instance?api-version=2021-02-01"]);
}

#[tokio::test]
async fn blank_fields_are_absent() {
    let body = r#"{"compute":{"name":"db-0","zone":"","platformFaultDomain":null}}"#;
    let server = Server::saying(says(200, body)).await;
    let instance = endpoint(&server).instance().await.unwrap();
    assert_eq!((instance.zone, instance.fault_domain, instance.scale_set), (None, None, None));
}

#[tokio::test]
async fn an_answer_without_a_name_is_no_information() {
    let long = json!({ "compute": { "name": "x".repeat(257) } }).to_string();
    for (status, body, word) in [
        (200, "", "empty_body"),
        (200, "<html>", "not_json"),
        (200, "{}", "no_name"),
        (200, r#"{"compute":[]}"#, "no_name"),
        (200, r#"{"compute":{}}"#, "no_name"),
        (200, r#"{"compute":{"name":" "}}"#, "no_name"),
        (200, r#"{"compute":{"name":7}}"#, "no_name"),
        (200, long.as_str(), "no_name"),
        (302, "", "redirect"),
        (404, "", "client_error"),
        (429, "", "throttled"),
        (503, "", "server_error"),
    ] {
        let server = Server::saying(says(status, body)).await;
        let read = endpoint(&server).instance().await;
        assert_eq!(read.map_err(|why: NoInformation| why.word()), Err(word), "{status} {body}");
    }
}
