//! Network faults during a poll. No fault means "no events", no fault is a crash, and the next poll works.

use tokio::net::{TcpSocket, TcpStream};

use allclear::core::model::id::EventId;
use allclear::imds::{Approval, MAX_BODY, NoInformation, Timeouts};

use super::server::{Answer, LIMIT, Server};
use super::{EMPTY, HASTY, PATIENT, SHORT, endpoint, endpoint_at, http, says};

/// One poll with the fault, and one poll afterwards.
async fn poll_through(fault: Answer, timeouts: Timeouts) -> &'static str {
    let server = Server::telling(vec![fault, says(200, EMPTY)]).await;
    let endpoint = endpoint_at(&server.url(), "2020-07-01", timeouts);
    let word = endpoint.poll().await.map_or_else(|why| why.word(), |_| "document");
    assert_eq!(server.requests().len(), 1, "a request was repeated");
    endpoint.poll().await.expect("the endpoint did not recover");
    word
}

fn raw(text: impl AsRef<[u8]>) -> Answer {
    Answer::Bytes(text.as_ref().to_vec())
}

fn cut_off(bytes: usize) -> Vec<u8> {
    let mut whole = http(200, EMPTY);
    whole.truncate(whole.len() - bytes);
    whole
}

#[tokio::test]
async fn every_status_of_the_table_is_survived() {
    for (status, body, word) in [
        (200, EMPTY, "document"),
        (200, "", "empty_body"),
        (400, "", "client_error"),
        (400, r#"{"error":"Bad request. Required metadata header not specified"}"#, "client_error"),
        (403, "", "not_allowed"),
        (404, "<html>Not found</html>", "not_served"),
        (405, "", "client_error"),
        (410, "", "moving"),
        (421, "", "not_allowed"),
        (429, r#"{"error":"Too many requests"}"#, "throttled"),
        (500, "", "server_error"),
        (502, "", "server_error"),
        (503, EMPTY, "server_error"),
        (202, EMPTY, "other_status"),
        (204, "", "other_status"),
    ] {
        let answer = if status == 204 {
            raw("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        } else {
            says(status, body)
        };
        assert_eq!(poll_through(answer, PATIENT).await, word, "{status} {body}");
    }
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Server::saying(says(200, EMPTY)).await;
    for status in [301, 302, 303, 307, 308] {
        let location = elsewhere.url();
        let redirect = raw(format!(
            "HTTP/1.1 {status} Go\r\nLocation: {location}/metadata\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
        ));
        assert_eq!(poll_through(redirect, PATIENT).await, "redirect", "{status}");
    }
    assert_eq!(elsewhere.lines(), [""; 0]);
}

#[tokio::test]
async fn broken_answers_are_survived() {
    let garbage = (0..=255).cycle().take(4096).collect::<Vec<u8>>();
    let many_headers = "X: y\r\n".repeat(10_000);
    for (name, answer, word) in [
        ("closed at once", raw(""), "broken_off"),
        ("half a head", raw("HTTP/1.1 200 O"), "broken_off"),
        ("another protocol", raw("SSH-2.0-OpenSSH_9.6\r\n"), "broken_off"),
        ("garbage", raw(garbage), "broken_off"),
        ("no end of headers", raw(format!("HTTP/1.1 200 OK\r\n{many_headers}\r\n{EMPTY}")), "broken_off"),
        ("a length that lies", raw(format!("HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{EMPTY}")), "broken_off"),
        ("a body cut off", raw(cut_off(1)), "broken_off"),
        ("a body missing", raw(cut_off(EMPTY.len())), "broken_off"),
        ("a chunk cut off", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\n{\"Doc"), "broken_off"),
        ("a chunk of no size", raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "broken_off"),
        ("a page to log in", says(200, "<html>Log in</html>"), "not_json"),
        (
            "a packed body",
            raw("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Encoding: gzip\r\n\r\n\x1f\x08\x00"),
            "not_json",
        ),
    ] {
        assert_eq!(poll_through(answer, PATIENT).await, word, "{name}");
    }
}

#[tokio::test]
async fn resets_are_survived_wherever_they_strike() {
    for sent in [Vec::new(), b"HTTP/1.1 200".to_vec(), cut_off(10)] {
        let word = poll_through(Answer::Reset(sent), PATIENT).await;
        assert!(["reset", "broken_off"].contains(&word), "{word}");
    }
}

#[tokio::test]
async fn an_answer_that_hangs_or_drips_ends_in_time() {
    for answer in
        [Answer::Hang(Vec::new()), Answer::Hang(cut_off(1)), Answer::Drip(b"HTTP/1.1 200 OK\r\n\r\n".to_vec())]
    {
        let server = Server::saying(answer).await;
        let endpoint = endpoint_at(&server.url(), "2020-07-01", HASTY);
        assert_eq!(endpoint.poll().await, Err(NoInformation::Timeout { after: SHORT }));
    }
}

#[tokio::test]
async fn a_body_without_an_end_is_cut_off() {
    for head in [
        "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX / 4),
        format!("HTTP/1.1 503 No\r\nContent-Length: {}\r\n\r\n", u64::MAX / 4),
    ] {
        assert_eq!(poll_through(Answer::Flood(head.into_bytes()), PATIENT).await, "too_large");
    }
    let longest = " ".repeat(MAX_BODY - EMPTY.len()) + EMPTY;
    assert_eq!(poll_through(says(200, &longest), PATIENT).await, "document");
    assert_eq!(poll_through(says(200, longest + " "), PATIENT).await, "too_large");
}

#[tokio::test]
async fn unusual_but_whole_answers_are_read() {
    let (first, rest) = EMPTY.split_at(9);
    let chunked = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n\
         {:x}\r\n{first}\r\n{:x}\r\n{rest}\r\n0\r\n\r\n",
        first.len(),
        rest.len()
    );
    for (name, answer) in [
        ("until the end", format!("HTTP/1.1 200 OK\r\n\r\n{EMPTY}")),
        ("HTTP/1.0", format!("HTTP/1.0 200 OK\r\n\r\n{EMPTY}")),
        ("no reason, other type", format!("HTTP/1.1 200\r\ncontent-type: text/plain\r\n\r\n{EMPTY}")),
        ("an interim answer", format!("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{EMPTY}")),
        ("chunked", chunked),
    ] {
        assert_eq!(poll_through(raw(answer), PATIENT).await, "document", "{name}");
    }
}

#[tokio::test]
async fn a_refused_connection_is_told_apart_and_nothing_was_sent() {
    // A bound socket that does not listen keeps its port from other tests.
    let bound = TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", bound.local_addr().unwrap());
    let endpoint = endpoint_at(&url, "2020-07-01", PATIENT);
    assert_eq!(endpoint.poll().await, Err(NoInformation::Refused));
    assert_eq!(endpoint.approve(&EventId::new("A"), LIMIT).await, Approval::NotSent(NoInformation::Refused));
}

#[tokio::test]
async fn a_connection_that_is_never_made_is_told_apart_and_nothing_was_sent() {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    // Two connections fill the queue of a listener that accepts none; further connections get no answer.
    let _first = TcpStream::connect(address).await.unwrap();
    let _second = TcpStream::connect(address).await.unwrap();
    let endpoint = endpoint_at(&format!("http://{address}"), "2020-07-01", Timeouts { connect: SHORT, ..PATIENT });
    assert!(matches!(endpoint.poll().await, Err(NoInformation::NotConnected { .. })));
    let approval = endpoint.approve(&EventId::new("A"), LIMIT).await;
    assert!(matches!(approval, Approval::NotSent(NoInformation::NotConnected { .. })), "{approval:?}");
}

#[tokio::test]
async fn a_service_that_says_nothing_for_good_never_says_that_there_are_no_events() {
    let server = Server::saying(says(200, "")).await;
    let endpoint = endpoint(&server);
    for _ in 0..5 {
        assert_eq!(endpoint.poll().await, Err(NoInformation::EmptyBody));
    }
}
