//! How the client polls: the header, the address, one request at a time, and patience for the first answer.

use std::sync::Arc;
use std::time::Duration;

use allclear::core::model::id::EventId;
use allclear::imds::{Approval, NoInformation};

use super::server::{Answer, LIMIT, Server};
use super::{EMPTY, HASTY, PATIENT, SHORT, answer, document_with, endpoint, endpoint_at, http, keeps, says};

#[tokio::test]
async fn every_request_carries_the_metadata_header_and_nothing_that_the_service_refuses() {
    let server = Server::saying(says(200, EMPTY)).await;
    let endpoint = endpoint(&server);
    endpoint.poll().await.unwrap();
    endpoint.approve(&EventId::new("A"), LIMIT).await;
    endpoint.instance().await.unwrap_err();
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.has("Metadata: true"), "{request:?}");
        assert!(!request.names("X-Forwarded-For"), "{request:?}");
        assert!(!request.names("Accept-Encoding"), "{request:?}");
    }
}

#[tokio::test]
async fn every_version_is_asked_for() {
    for (version, target) in [
        ("2017-03-01", "/metadata/scheduledevents?api-version=2017-03-01"),
        ("2017-08-01", "/metadata/scheduledevents?api-version=2017-08-01"),
        ("2017-11-01", "/metadata/scheduledevents?api-version=2017-11-01"),
        ("2019-01-01", "/metadata/scheduledevents?api-version=2019-01-01"),
        ("2019-04-01", "/metadata/scheduledevents?api-version=2019-04-01"),
        ("2019-08-01", "/metadata/scheduledevents?api-version=2019-08-01"),
        ("2020-07-01", "/metadata/scheduledevents?api-version=2020-07-01"),
    ] {
        let server = Server::saying(says(200, EMPTY)).await;
        let endpoint = endpoint_at(&server.url(), version, PATIENT);
        assert_eq!(endpoint.poll().await.unwrap().version.to_string(), version);
        endpoint.approve(&EventId::new("A"), LIMIT).await;
        assert_eq!(server.lines(), [format!("GET {target}"), format!("POST {target}")]);
    }
}

#[tokio::test]
async fn an_id_is_found_in_any_case() {
    let server = Server::saying(says(200, document_with(r#"{"EventId":"A"}"#))).await;
    let polled = endpoint(&server).poll().await.unwrap();
    assert!(polled.document.get(&EventId::new("a")).is_some());
}

#[tokio::test]
async fn polls_use_one_connection_as_long_as_it_is_kept() {
    let server = Server::saying(keeps(200, EMPTY)).await;
    let endpoint = endpoint(&server);
    for _ in 0..3 {
        endpoint.poll().await.unwrap();
    }
    assert_eq!(server.requests().iter().map(|request| request.connection).collect::<Vec<_>>(), [0, 0, 0]);
}

#[tokio::test]
async fn a_slow_first_answer_is_waited_for_and_later_ones_are_not() {
    let slow = Answer::Late(SHORT * 2, http(200, EMPTY));
    let server = Server::telling(vec![slow, Answer::Hang(Vec::new())]).await;
    let endpoint = endpoint_at(&server.url(), "2020-07-01", super::Timeouts { first_answer: PATIENT.answer, ..HASTY });
    endpoint.poll().await.unwrap();
    assert_eq!(endpoint.poll().await, Err(NoInformation::Timeout { after: SHORT }));
}

#[tokio::test]
async fn failures_do_not_end_the_patience_for_the_first_answer() {
    let slow = Answer::Late(SHORT * 2, http(200, EMPTY));
    let server = Server::telling(vec![says(503, ""), says(410, ""), Answer::Reset(Vec::new()), slow]).await;
    let endpoint = endpoint_at(&server.url(), "2020-07-01", super::Timeouts { first_answer: PATIENT.answer, ..HASTY });
    for _ in 0..3 {
        endpoint.poll().await.unwrap_err();
    }
    endpoint.poll().await.unwrap();
}

#[tokio::test]
async fn one_request_is_under_way_at_a_time() {
    let server = Server::saying(Answer::Late(Duration::from_millis(20), http(200, EMPTY))).await;
    let endpoint = Arc::new(endpoint(&server));
    let poll = || {
        tokio::spawn({
            let endpoint = Arc::clone(&endpoint);
            async move { endpoint.poll().await }
        })
    };
    let polls = (0..5).map(|_| poll()).collect::<Vec<_>>();
    for polled in polls {
        polled.await.unwrap().unwrap();
    }
    assert_eq!((server.requests().len(), server.most_under_way()), (5, 1));
}

#[tokio::test]
async fn a_poll_that_hangs_gives_way_to_an_approval() {
    let server = Server::telling(vec![Answer::Hang(Vec::new()), says(200, "")]).await;
    let endpoint = Arc::new(endpoint(&server));
    let hanging = tokio::spawn({
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.poll().await }
    });
    server.has_been_asked(1).await;
    assert_eq!(endpoint.approve(&EventId::new("A"), LIMIT).await, Approval::Accepted);
    assert_eq!(hanging.await.unwrap(), Err(NoInformation::GaveWay));
}

#[tokio::test]
async fn a_question_for_the_name_that_hangs_gives_way_too() {
    let server = Server::telling(vec![Answer::Hang(Vec::new()), says(200, "")]).await;
    let endpoint = Arc::new(endpoint(&server));
    let hanging = tokio::spawn({
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.instance().await }
    });
    server.has_been_asked(1).await;
    assert_eq!(endpoint.approve(&EventId::new("A"), LIMIT).await, Approval::Accepted);
    assert_eq!(hanging.await.unwrap(), Err(NoInformation::GaveWay));
}

#[tokio::test]
async fn a_poll_that_its_caller_gave_up_does_not_block_the_next() {
    let server = Server::telling(vec![Answer::Hang(Vec::new()), says(200, EMPTY)]).await;
    let endpoint = Arc::new(endpoint(&server));
    let hanging = tokio::spawn({
        let endpoint = Arc::clone(&endpoint);
        async move { endpoint.poll().await }
    });
    server.has_been_asked(1).await;
    hanging.abort();
    endpoint.poll().await.unwrap();
}

#[tokio::test]
async fn a_document_brings_the_date_of_its_answer() {
    let body = document_with("");
    for (header, expected) in
        [("Date: Mon, 11 Apr 2022 22:26:58 GMT\r\n", Some(1_649_716_018_000)), ("", None), ("Date: soon\r\n", None)]
    {
        let server = Server::saying(Answer::Bytes(answer(200, header, body.as_bytes()))).await;
        assert_eq!(endpoint(&server).poll().await.unwrap().date.map(|date| date.0), expected, "{header}");
    }
}
