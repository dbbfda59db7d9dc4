//! HTTP hooks: cases of this kind only, beside `contract.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};

use allclear::core::model::workload::Intent;
use allclear::hooks::{HookCommand, HookOutcome, HookTask, HttpHook};
use tokio::io::AsyncReadExt as _;
use tokio::net::TcpListener;

use crate::workloads::bench::{ATTEMPT, Bench, end, task, until};
use crate::workloads::server::{Server, answer};

/// The outcome of a hook at this address.
async fn outcome_of(bench: &Bench, task: &HookTask, url: &str) -> HookOutcome {
    let (runner, mut reports) = bench.open();
    runner.run(task, &HookCommand { argv: HttpHook::at(url).command(), ..bench.shell("") });
    end(&mut reports).await
}

async fn outcome(url: &str) -> HookOutcome {
    outcome_of(&Bench::new(), &task(), url).await
}

fn is_unknown(ended: &HookOutcome, because: &str) -> bool {
    matches!(ended, HookOutcome::Unknown(reason) if reason.contains(because))
}

#[tokio::test]
async fn the_facts_are_posted_and_the_headers_tell_requests_apart() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let url = server.url("/drain?a=b");
    let traced = HookTask { traceparent: Some("00-aa-bb-01".into()), ..task() };
    assert_eq!(outcome_of(&Bench::new(), &traced, &url).await, HookOutcome::Done);
    let again = HookTask { attempt: "event/1:again".into(), ..task() };
    for task in [HookTask { intent: Intent::Confirm, ..task() }, HookTask { intent: Intent::Undo, ..task() }, task()] {
        assert_eq!(outcome_of(&Bench::new(), &task, &url).await, HookOutcome::Done);
    }
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&again, &HookCommand { argv: HttpHook::at(&url).command(), ..bench.shell("") });
    assert_eq!(reports.recv().await.unwrap().attempt, "event/1:again");

    let posts = server.requests("POST");
    let step = "A1-b2@1500/db-0/postgres/failover/0";
    let keys: Vec<_> = posts.iter().map(|post| post.headers["idempotency-key"].clone()).collect();
    let confirm = format!("{step}/confirm/event/1:failover");
    assert_eq!(keys, [step, &confirm, &format!("{step}/undo"), step, step]);
    let first = &posts[0];
    assert_eq!((first.path.as_str(), first.headers["content-type"].as_str()), ("/drain?a=b", "application/json"));
    assert_eq!(first.headers["allclear-fence"], "3.17");
    assert_eq!(first.headers["traceparent"], "00-aa-bb-01");
    let facts: serde_json::Value = serde_json::from_str(&first.body).unwrap();
    assert_eq!(facts["deadline"], first.headers["allclear-deadline"].as_str());
    assert!(!posts[1].headers.contains_key("traceparent"));
}

#[tokio::test]
async fn what_never_reached_the_server_is_blocked() {
    // A bound socket that does not listen keeps its port from other tests.
    let bound = tokio::net::TcpSocket::new_v4().unwrap();
    bound.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", bound.local_addr().unwrap());
    let ended = outcome(&url).await;
    assert!(matches!(&ended, HookOutcome::Blocked(reason) if reason.starts_with("nothing was sent")), "{ended}");
}

#[tokio::test]
async fn an_answer_that_is_lost_cut_off_or_without_end_is_unknown() {
    let silent = Server::start(|_| None).await;
    assert!(is_unknown(&outcome(&silent.url("/")).await, "the answer was lost"));
    let cut_off = Server::start(|_| Some(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{".to_vec())).await;
    assert!(is_unknown(&outcome(&cut_off.url("/")).await, "the answer was lost"));
    let endless = Server::start(|_| answer(200, &[], &"x".repeat(100_000))).await;
    assert!(is_unknown(&outcome(&endless.url("/")).await, "longer than 64 KiB"));
    let garbage = Server::start(|_| Some(b"\0\0\0\0\r\n\r\n".to_vec())).await;
    assert!(matches!(outcome(&garbage.url("/")).await, HookOutcome::Unknown(_)));
}

#[tokio::test]
async fn a_refusal_says_why() {
    for (status, headers, body, expected) in [
        (400, vec![], "no such table\nmore", HookOutcome::Failed("400 Bad Request: no such table".into())),
        (409, vec![], "", HookOutcome::Failed("409 Conflict".into())),
        (503, vec![("Retry-After", "5")], "", HookOutcome::Blocked("503 Service Unavailable".into())),
        (503, vec![], "a proxy says so", HookOutcome::Unknown("503 Service Unavailable: a proxy says so".into())),
    ] {
        let server = Server::start(move |_| answer(status, &headers, body)).await;
        assert_eq!(outcome(&server.url("/")).await, expected);
    }
}

#[tokio::test]
async fn nobody_but_the_configured_server_is_asked() {
    let other = Server::start(|_| answer(200, &[], "")).await;
    let elsewhere = other.url("/");
    let redirects = {
        let elsewhere = elsewhere.clone();
        Server::start(move |_| answer(307, &[("Location", &elsewhere)], "")).await
    };
    assert!(matches!(outcome(&redirects.url("/")).await, HookOutcome::Failed(_)));
    let accepts = {
        let elsewhere = elsewhere.clone();
        Server::start(move |_| answer(202, &[("Location", &elsewhere)], "")).await
    };
    assert!(is_unknown(&outcome(&accepts.url("/")).await, "which is not on"));

    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let server = Server::start(|_| answer(200, &[], "")).await;
    let mut command = HookCommand { argv: HttpHook::at(&server.url("/")).command(), ..bench.shell("") };
    for name in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        command.env.insert(name.into(), elsewhere.clone());
    }
    runner.run(&task(), &command);
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    for method in ["GET", "POST", "DELETE"] {
        assert_eq!(other.requests(method).len(), 0, "{method}");
    }
}

#[tokio::test]
async fn the_platform_is_never_asked() {
    for url in ["http://169.254.169.254/", "http://0xa9fea9fe/", "ftp://127.0.0.1/"] {
        assert!(matches!(outcome(url).await, HookOutcome::Failed(_)), "{url}");
    }
}

#[tokio::test]
async fn a_server_that_goes_away_for_a_while_is_asked_again_and_posted_to_once() {
    let asked = AtomicUsize::new(0);
    let server = Server::start(move |request| match request.method.as_str() {
        "POST" => answer(202, &[("Location", "/jobs/7")], ""),
        _ => match asked.fetch_add(1, Ordering::SeqCst) {
            0 => None,
            1 => answer(503, &[], ""),
            2 => answer(202, &[], "not json"),
            _ => answer(200, &[], r#"{"outcome": "failed", "reason": "no space"}"#),
        },
    })
    .await;
    assert_eq!(outcome(&server.url("/")).await, HookOutcome::Failed("no space".into()));
    assert_eq!(server.requests("POST").len(), 1);
    assert!(server.requests("GET").iter().all(|get| get.path == "/jobs/7"));
}

#[tokio::test]
async fn a_server_that_lost_what_it_accepted_is_not_believed_to_have_done_it() {
    let server = Server::start(|request| match request.method.as_str() {
        "POST" => answer(202, &[("Location", "/jobs/7")], ""),
        _ => answer(404, &[], ""),
    })
    .await;
    assert!(is_unknown(&outcome(&server.url("/")).await, "404 Not Found"));
    let nameless = Server::start(|_| answer(202, &[], "")).await;
    assert!(is_unknown(&outcome(&nameless.url("/")).await, "without a Location"));
}

/// The outcome of a hook that is cancelled during its job, whose DELETE receives this answer.
async fn cancelled(to_delete: Option<(u16, &'static str)>) -> HookOutcome {
    let server = Server::start(move |request| match (request.method.as_str(), to_delete) {
        ("DELETE", Some((status, body))) => answer(status, &[], body),
        ("DELETE", None) => None,
        _ => answer(202, &[("Location", "/jobs/7")], ""),
    })
    .await;
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &HookCommand { argv: HttpHook::at(&server.url("/")).command(), ..bench.shell("") });
    until(|| !server.requests("GET").is_empty()).await;
    runner.cancel(ATTEMPT);
    let ended = end(&mut reports).await;
    assert!(server.requests("DELETE").iter().all(|delete| delete.path == "/jobs/7"));
    assert_eq!(server.requests("DELETE").len(), 1);
    ended
}

/// A server at work would go on beside the next attempt.
#[tokio::test]
async fn a_cancelled_job_has_stopped_only_if_its_server_says_so() {
    assert_eq!(cancelled(Some((204, ""))).await, HookOutcome::Cancelled);
    assert_eq!(cancelled(Some((200, r#"{"outcome": "cancelled"}"#))).await, HookOutcome::Cancelled);
    assert_eq!(cancelled(Some((200, r#"{"outcome": "done"}"#))).await, HookOutcome::Done);
    for refusal in [Some((202, "")), Some((405, "no DELETE here")), Some((404, "")), Some((500, "")), None] {
        let ended = cancelled(refusal).await;
        assert!(is_unknown(&ended, "did not acknowledge the cancellation"), "{refusal:?}: {ended}");
    }
}

#[tokio::test]
async fn a_hook_that_is_cancelled_before_the_answer_of_its_server_is_unknown() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &HookCommand { argv: HttpHook::at(&url).command(), ..bench.shell("") });
    let (mut connection, _) = silent.accept().await.unwrap();
    connection.read_u8().await.unwrap();
    runner.cancel(ATTEMPT);
    assert!(is_unknown(&end(&mut reports).await, "before the answer of the server"));
}
