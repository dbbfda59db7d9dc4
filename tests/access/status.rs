//! The status port: for reading, and only for requests meant for this replica.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use super::cluster::Cluster;
use super::somebody::{refused, told};

/// The response to these lines: the code, and the whole text.
fn asks(cluster: &Cluster, lines: &[&str]) -> (u16, String) {
    let mut stream = TcpStream::connect(cluster.replicas[0].page.trim_start_matches("http://")).unwrap();
    stream.write_all(format!("{}\r\nConnection: close\r\n\r\n", lines.join("\r\n")).as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let code = answer.split_whitespace().nth(1).unwrap_or_else(|| panic!("{lines:?}: {answer:?}"));
    (code.parse().unwrap(), answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn only_whoever_means_this_replica_is_answered() {
    let cluster = Cluster::of(&["db-0"]).also("status.host_names", "[\"Status.Example.com\"]").start().await;
    let code = |lines: &[&str]| asks(&cluster, lines).0;
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let names =
        ["127.0.0.1", "10.1.2.3:7421", "[::1]:7421", "localhost:8080", "db-0", "DB-0:7421", "status.example.com"];
    for name in names.into_iter().chain([machine.trim()]) {
        assert_eq!(code(&["GET /v1/status HTTP/1.1", &format!("Host: {name}")]), 200, "{name}");
    }
    assert_eq!((refused(&cluster, "status", "host").await, told(&cluster, "status", "host").len()), (0, 0));

    let rebound = asks(&cluster, &["GET /v1/status HTTP/1.1", "Host: rebound.evil.example:7421"]);
    assert!(rebound.0 == 421 && rebound.1.contains("status.host_names") && !rebound.1.contains("db-0"), "{rebound:?}");
    for path in ["/", "/metrics", "/livez", "/v1/watch", "/openapi.json", "/nowhere"] {
        assert_eq!(code(&[&format!("GET {path} HTTP/1.1"), "Host: evil.example"]), 421, "{path}");
    }
    assert_eq!(code(&["GET /v1/status HTTP/1.1", "Host: localhost", "Host: evil.example"]), 400);
    assert_eq!(code(&["GET /v1/status HTTP/1.1", "Host: localhost@evil.example"]), 400);
    assert_eq!(code(&["GET http://evil.example/v1/status HTTP/1.1", "Host: localhost"]), 421);
    assert_eq!(code(&["GET http://localhost/v1/status HTTP/1.1", "Host: evil.example"]), 421);
    assert_eq!(code(&["GET /v1/status HTTP/1.1"]), 400);
    assert_eq!(code(&["GET /v1/status HTTP/1.0", "Host: evil.example"]), 421);
    assert_eq!(code(&["GET /livez HTTP/1.0"]), 200, "what asks so plainly is no browser");
    assert_eq!(refused(&cluster, "status", "host").await, 13);
    let lines = told(&cluster, "status", "host");
    assert_eq!((&lines[0]["who"], &lines[0]["asked"]), (&"127.0.0.1".into(), &"rebound.evil.example:7421".into()));
}

/// A replica with both addresses. Another test may have the port at the second address.
async fn at_both(listen: &'static str) -> (Cluster, String) {
    for _ in 0..20 {
        let mut cluster = Cluster::of(&["db-0"]).also("status.listen", listen).cold().await;
        cluster.start(0);
        cluster.until(0, "alone in its quorum", |status| status.quorum).await;
        let log = cluster.log(0);
        if log.contains("\"other_status_address\":") {
            return (cluster, log);
        }
    }
    panic!("other programs have every port that a replica chose");
}

/// A browser takes `localhost` for the address of either version.
#[tokio::test(flavor = "multi_thread")]
async fn localhost_is_answered_whichever_address_it_is() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        return crate::left_out::is_forbidden("IPv6");
    }
    for (listen, hosts) in [("127.0.0.1:0", ["127.0.0.1", "[::1]"]), ("[::1]:0", ["[::1]", "127.0.0.1"])] {
        let (mut cluster, log) = at_both(listen).await;
        let first = log.split("\"status_address\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        let port = first.rsplit_once(':').unwrap().1;
        assert_eq!(first, format!("{}:{port}", hosts[0]));
        for host in hosts {
            cluster.replicas[0].page = format!("http://{host}:{port}");
            assert_eq!(cluster.page(0, "/livez").await.0, 200, "{host}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_page_from_elsewhere_reads_it_and_nothing_is_changed_by_it() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    let own = cluster.replicas[0].page.clone();
    let host = format!("Host: {}", own.trim_start_matches("http://"));
    let from = |origin: &str| asks(&cluster, &["GET /v1/status HTTP/1.1", &host, &format!("Origin: {origin}")]);
    assert_eq!(from(&own).0, 200);
    for origin in ["http://evil.example", "null", "http://127.0.0.3:1"] {
        assert_eq!(from(origin).0, 403, "{origin}");
    }
    assert_eq!(refused(&cluster, "status", "origin").await, 3);
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let (code, answer) = asks(&cluster, &[&format!("{method} /v1/status HTTP/1.1"), &host]);
        assert!(code == 405 && answer.to_ascii_lowercase().contains("allow: get, head"), "{method}: {answer}");
        assert!(!answer.to_ascii_lowercase().contains("access-control-allow"), "{answer}");
    }
    assert_eq!(refused(&cluster, "status", "method").await, 6);
    assert_eq!(asks(&cluster, &["HEAD / HTTP/1.1", &host]).0, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_tells_browsers_to_keep_it_to_themselves() {
    let cluster = Cluster::of(&["db-0"]).start().await;
    for (path, name) in
        [("/", "localhost"), ("/v1/status", "localhost"), ("/nowhere", "localhost"), ("/", "evil.example")]
    {
        let (_, answer) = asks(&cluster, &[&format!("GET {path} HTTP/1.1"), &format!("Host: {name}")]);
        let answer = answer.to_ascii_lowercase();
        for header in ["x-content-type-options: nosniff", "cross-origin-resource-policy: same-origin"] {
            assert!(answer.contains(header), "{path} at {name}: {answer}");
        }
    }
    let (_, page) = asks(&cluster, &["GET / HTTP/1.1", "Host: localhost"]);
    for part in ["frame-ancestors 'none'", "default-src 'none'", "base-uri 'none'", "form-action 'none'", "no-referrer"]
    {
        assert!(page.contains(part), "{page}");
    }
}
