//! The one POST: its content, its single transmission, and the meaning of each answer.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use allclear::core::model::id::EventId;
use allclear::imds::{Approval, NoInformation, Timeouts};

use super::server::{Answer, LIMIT, Server};
use super::{EMPTY, HASTY, PATIENT, SHORT, endpoint, endpoint_at, http, keeps, says};

const ID: &str = "C7061BAC-AFDC-4513-B24B-AA5F13A16123";

async fn approve(answer: Answer, timeouts: Timeouts) -> Approval {
    let server = Server::saying(answer).await;
    let approval = endpoint_at(&server.url(), "2020-07-01", timeouts).approve(&EventId::new(ID), LIMIT).await;
    assert_eq!(server.lines(), ["POST /metadata/scheduledevents?api-version=2020-07-01"]);
    approval
}

#[tokio::test]
async fn the_id_is_sent_as_it_was_received_and_nothing_else() {
    for id in [ID, "c7061bac-AFDC", "quote\" back\\ é \n"] {
        let server = Server::saying(says(200, "")).await;
        assert_eq!(endpoint(&server).approve(&EventId::new(id), LIMIT).await, Approval::Accepted);
        let request = &server.requests()[0];
        let body: Value = serde_json::from_str(&request.body).unwrap();
        assert_eq!(body, json!({ "StartRequests": [{ "EventId": id }] }));
        assert!(request.has("Content-Type: application/json"));
    }
}

#[tokio::test]
async fn only_200_is_accepted_and_every_error_status_is_refused() {
    for body in ["", "{}", "<html>", EMPTY] {
        assert_eq!(approve(says(200, body), PATIENT).await, Approval::Accepted);
    }
    for status in [301, 307, 308, 400, 401, 403, 404, 405, 410, 429, 500, 503, 504] {
        assert_eq!(approve(says(status, ""), PATIENT).await, Approval::Refused(status));
    }
    for status in [201, 202, 299] {
        assert!(matches!(approve(says(status, ""), PATIENT).await, Approval::Unknown(_)), "{status}");
    }
}

#[tokio::test]
async fn a_post_is_not_carried_on_to_where_a_redirect_points() {
    let elsewhere = Server::saying(says(200, "")).await;
    let redirect = format!("HTTP/1.1 307 Go\r\nLocation: {}/\r\nContent-Length: 0\r\n\r\n", elsewhere.url());
    assert_eq!(approve(Answer::Bytes(redirect.into_bytes()), PATIENT).await, Approval::Refused(307));
    assert_eq!(elsewhere.lines(), [""; 0]);
}

#[tokio::test]
async fn what_was_sent_and_not_answered_is_unknown_and_not_repeated() {
    for answer in [
        Answer::Bytes(Vec::new()),
        Answer::Bytes(b"HTTP/1.1 2".to_vec()),
        Answer::Bytes(b"garbage\r\n\r\n".to_vec()),
        Answer::Reset(Vec::new()),
    ] {
        let approval = approve(answer, PATIENT).await;
        assert!(matches!(approval, Approval::Unknown(_)), "{approval:?}");
    }
    let hanging = approve(Answer::Hang(Vec::new()), HASTY).await;
    assert_eq!(hanging, Approval::Unknown(NoInformation::Timeout { after: SHORT }));
}

#[tokio::test]
async fn the_status_counts_whatever_becomes_of_the_body() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n";
    let cut = |bytes| Answer::Bytes(http(200, EMPTY)[..bytes].to_vec());
    for answer in [cut(100), Answer::Flood(head.to_vec())] {
        assert_eq!(approve(answer, PATIENT).await, Approval::Accepted);
    }
    // Without a complete HTTP header there is no status.
    assert!(matches!(approve(cut(60), PATIENT).await, Approval::Unknown(_)));
}

#[tokio::test]
async fn a_body_that_never_comes_is_not_waited_for() {
    let for_ever = Timeouts { answer: LIMIT * 10, ..PATIENT };
    let approval = approve(Answer::Hang(b"HTTP/1.1 200 OK\r\n\r\n".to_vec()), for_ever);
    assert_eq!(tokio::time::timeout(LIMIT, approval).await, Ok(Approval::Accepted));
}

#[tokio::test]
async fn a_body_is_not_read_beyond_a_size() {
    let server = Server::saying(Answer::Flood(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())).await;
    assert_eq!(endpoint(&server).approve(&EventId::new(ID), LIMIT).await, Approval::Accepted);
    assert!(!server.was_read_to_its_end().await);
}

#[tokio::test]
async fn a_post_that_would_wait_for_another_request_for_too_long_is_not_sent() {
    let server = Server::telling(vec![Answer::Hang(Vec::new()), says(200, "")]).await;
    let endpoint = Arc::new(endpoint(&server));
    let looking = tokio::spawn({
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.look().await }
    });
    server.has_been_asked(1).await;
    let approval = endpoint.approve(&EventId::new(ID), Duration::from_millis(50)).await;
    assert!(matches!(approval, Approval::NotSent(NoInformation::Queued { .. })), "{approval:?}");
    looking.abort();
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_post_has_a_connection_of_its_own() {
    let server = Server::telling(vec![keeps(200, EMPTY), keeps(200, "")]).await;
    let endpoint = endpoint(&server);
    endpoint.poll().await.unwrap();
    for _ in 0..2 {
        assert_eq!(endpoint.approve(&EventId::new(ID), LIMIT).await, Approval::Accepted);
    }
    assert_eq!(server.requests().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 1, 2]);
}
