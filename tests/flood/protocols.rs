//! Every listener receives every protocol that its libraries may have been built to support. The listener serves its
//! own protocol, or closes the connection within its time limit.

use std::io;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::attacks::{Stream, Target};
use super::cluster::Cluster;
use super::doors::{LIMIT, MEMORY, between_replicas, ended, one_replica, socket, status};
use super::frames::{HEADERS, PREFACE, beginning, frame, get};
use super::knock::greet;
use super::memory;
use super::pki::{Pki, address};

/// The first bytes of a client.
struct Words {
    name: &'static str,
    said: Vec<u8>,
    /// Accepted beginnings of an answer where HTTP/1.1 is spoken; with several, any of them, or no answer at all.
    answers: &'static [&'static str],
}

const OK: &[&str] = &["HTTP/1.1 200", "HTTP/1.0 200"];
const NOTHING_TO_DO: &[&str] = &["HTTP/1.1 4", "HTTP/1.0 4"];
const GET: &str = "GET /v1/status HTTP/1.1\r\nhost: localhost\r\n";

fn words() -> Vec<Words> {
    let of = |name, said: &[u8], answers| Words { name, said: said.to_vec(), answers };
    let http = |name, said: String, answers| Words { name, said: said.into_bytes(), answers };
    let mut all = vec![
        http("HTTP/1.0", "GET /v1/status HTTP/1.0\r\nhost: localhost\r\n\r\n".into(), OK),
        http("HTTP/1.1", format!("{GET}connection: close\r\n\r\n"), OK),
        http("pipelining", format!("{GET}\r\n{GET}\r\n{GET}connection: close\r\n\r\n"), OK),
        http(
            "an upgrade to HTTP/2",
            format!(
                "{GET}connection: upgrade, http2-settings\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n\r\n"
            ),
            OK,
        ),
        http(
            "a web socket",
            format!(
                "{GET}connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
                 sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
            ),
            OK,
        ),
        http("CONNECT", "CONNECT localhost:22 HTTP/1.1\r\nhost: localhost:22\r\n\r\n".into(), NOTHING_TO_DO),
        http(
            "pieces and trailers",
            "POST /v1/status HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\ntrailer: x\r\n\r\n\
             5\r\nhello\r\n0\r\nx: y\r\n\r\n"
                .into(),
            NOTHING_TO_DO,
        ),
        http("a line of a proxy", format!("PROXY TCP4 127.0.0.9 127.0.0.1 5 6\r\n{GET}\r\n"), NOTHING_TO_DO),
        http("SSH", "SSH-2.0-OpenSSH_9.2\r\n".repeat(3), NOTHING_TO_DO),
        of("anything", &(0..=255).collect::<Vec<u8>>(), NOTHING_TO_DO),
        of("HTTP/2", &[&beginning()[..], &get(1, "/v1/status"), &get(3, "/metrics")].concat(), NOTHING_TO_DO),
    ];
    for (name, protocols) in
        [("TLS for HTTP/2", &[&b"h2"[..]][..]), ("TLS for HTTP/1.1", &[&b"http/1.1"[..]]), ("TLS", &[])]
    {
        all.push(of(name, &super::knock::first_words(protocols), NOTHING_TO_DO));
    }
    all
}

/// Reads while bytes arrive, until the connection is closed or HTTP/2 has begun and answered.
async fn heard(stream: &mut Box<dyn Stream>) -> Vec<u8> {
    let mut heard = Vec::new();
    let reading = async {
        loop {
            match stream.read_buf(&mut heard).await {
                Ok(0) => return,
                Ok(_) if kinds(&heard).contains(&HEADERS) => return,
                Ok(_) => {}
                Err(error) => return assert_eq!(error.kind(), io::ErrorKind::ConnectionReset),
            }
        }
    };
    timeout(LIMIT, reading).await.expect("it is left open");
    heard
}

/// Types of the frames, if the bytes are frames.
fn kinds(mut heard: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while let [high, middle, low, kind, ..] = *heard {
        kinds.push(kind);
        heard = heard.get(9 + u32::from_be_bytes([0, high, middle, low]) as usize..).unwrap_or_default();
    }
    kinds
}

fn speaks_http1(heard: &[u8]) -> bool {
    heard.windows(7).any(|words| words == b"HTTP/1.")
}

/// Sends all words at the same time: some connections are closed when their time has expired.
async fn say_all(door: &Target) -> Vec<(Words, Box<dyn Stream>)> {
    let mut said = Vec::new();
    for words in words() {
        let mut stream = door.dial().await.unwrap();
        // The connection may be closed before everything is sent.
        let _ = stream.write_all(&words.said).await;
        said.push((words, stream));
    }
    said
}

#[tokio::test]
async fn where_http1_is_spoken_nothing_else_is() {
    let cluster = one_replica().await;
    for (words, mut stream) in say_all(&status(&cluster)).await {
        let said = ended(&mut stream).await;
        let is_meant = words.answers.iter().any(|begins| said.starts_with(begins.as_bytes()));
        let is_refused = said.is_empty() && words.answers != OK;
        assert!(is_meant || is_refused, "{}: {}", words.name, said.escape_ascii());
        if words.name == "pipelining" {
            assert_eq!(said.windows(12).filter(|words| words == b"HTTP/1.1 200").count(), 3);
        }
    }
    // A fake cloud has no attackers: an open connection is never timed out.
    let cloud = cluster.cloud.endpoint("db-0").trim_start_matches("http://").parse().unwrap();
    for (words, mut stream) in say_all(&Target::Port(cloud)).await {
        let _ = stream.shutdown().await;
        let said = ended(&mut stream).await;
        let is_meant = said.is_empty() || speaks_http1(&said[..said.len().min(7)]);
        assert!(is_meant && !said.starts_with(b"HTTP/1.1 1"), "{}: {}", words.name, said.escape_ascii());
    }
    let peak = memory::peak(&cluster, 0);
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

#[tokio::test]
async fn where_http2_is_spoken_nothing_else_is() {
    let cluster = one_replica().await;
    for door in [socket(&cluster, "operator"), socket(&cluster, "workloads"), between_replicas(&cluster)] {
        for (words, mut stream) in say_all(&door).await {
            let said = heard(&mut stream).await;
            let is_answered = kinds(&said).contains(&HEADERS);
            assert_eq!(is_answered, words.name == "HTTP/2", "{}: {}", words.name, said.escape_ascii());
            assert!(!speaks_http1(&said), "{}: {}", words.name, said.escape_ascii());
        }
    }
    let peak = memory::peak(&cluster, 0);
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

#[tokio::test]
async fn where_certificates_are_asked_for_nothing_is_said_without_one_and_nothing_but_http2_with_one() {
    let pki = Pki::new();
    let cluster = Cluster::of(&["db-0", "db-1", "db-2"]).tables(pki.tables("")).start().await;
    let door = Target::Port(address(&cluster, 0).parse().unwrap());
    for (words, mut stream) in say_all(&door).await {
        let said = ended(&mut stream).await;
        // An alert, or the beginning of a handshake.
        let is_tls = said.is_empty() || said[0] == 0x15 || (said[0] == 0x16 && words.name.starts_with("TLS"));
        assert!(is_tls && !speaks_http1(&said), "{}: {}", words.name, said.escape_ascii());
    }
    for protocols in [&[&b"h2"[..]][..], &[&b"http/1.1"[..]], &[]] {
        let stranger = greet(&address(&cluster, 0), None, protocols).await;
        assert!(!serves(stranger, PREFACE).await, "somebody without a certificate was let in");
        let member = greet(&address(&cluster, 0), Some(pki.of("ca", "db-1")), protocols).await;
        let is_meant = !protocols.contains(&&b"http/1.1"[..]);
        let http2 = [&beginning()[..], &get(1, "/v1/status")].concat();
        assert_eq!(serves(member, &http2).await, is_meant, "a member is served HTTP/2");
        let member = greet(&address(&cluster, 0), Some(pki.of("ca", "db-1")), protocols).await;
        let http1 = format!("{GET}connection: close\r\n\r\n");
        assert!(!serves(member, http1.as_bytes()).await, "a member is served HTTP/1.1");
    }
    let peak = memory::peak(&cluster, 0);
    assert!(peak < MEMORY, "{:.1} MiB", memory::mib(peak));
}

/// True if a call is answered; otherwise the connection is closed.
async fn serves(met: io::Result<tokio_rustls::client::TlsStream<TcpStream>>, said: &[u8]) -> bool {
    let Ok(mut stream) = met else { return false };
    let mut heard = Vec::new();
    let listening = async {
        stream.write_all(said).await?;
        while stream.read_buf(&mut heard).await? > 0 && !kinds(&heard).contains(&HEADERS) {}
        io::Result::Ok(())
    };
    // Any kind of end is accepted.
    let _ = timeout(LIMIT, listening).await.expect("it is left open");
    assert!(!speaks_http1(&heard), "{}", heard.escape_ascii());
    kinds(&heard).contains(&HEADERS)
}

#[test]
fn frames_are_told_by_their_kind() {
    let words = [frame(4, 0, 0, &[0; 6]), frame(HEADERS, 4, 1, &[1, 2])].concat();
    assert_eq!(kinds(&words), [4, HEADERS]);
    assert_eq!(kinds(&words[..12]), [4]);
}
