//! The VM's own name.

use serde_json::json;

use allclear::imds::NoInformation;

use super::server::Server;
use super::{endpoint, says};

#[tokio::test]
async fn the_name_is_read_and_not_the_host_name() {
    let compute = json!({ "name": "web_13", "osProfile": { "computerName": "web00000D" } });
    let server = Server::saying(says(200, json!({ "compute": compute, "network": {} }).to_string())).await;
    assert_eq!(endpoint(&server).instance().await.unwrap().name.as_str(), "web_13");
    assert_eq!(server.lines(), ["GET /metadata/instance?api-version=2021-02-01"]);
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
