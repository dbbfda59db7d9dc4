//! A receiver of notifications on loopback: records every request, and answers as configured.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_rustls::TlsAcceptor;

/// Far longer than any step takes on a loaded machine; only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mood {
    Takes,
    Answers(u16),
    /// Reads and never answers.
    Hangs,
}

#[derive(Clone, Debug)]
pub(crate) struct Post {
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// The mood in which the request was received.
    pub(crate) mood: Mood,
}

impl Post {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The id of the cloud event.
    pub(crate) fn id(&self) -> String {
        self.json()["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn topic(&self) -> String {
        self.json()["data"]["topic"].as_str().unwrap().to_owned()
    }
}

pub(crate) struct Inbox {
    pub(crate) url: String,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    mood: Mutex<Mood>,
    posts: Mutex<Vec<Post>>,
}

impl Inbox {
    pub(crate) async fn open() -> Self {
        Self::serve(None).await
    }

    pub(crate) async fn over_tls(acceptor: TlsAcceptor) -> Self {
        Self::serve(Some(acceptor)).await
    }

    async fn serve(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://{}/inbox", listener.local_addr().unwrap());
        let shared = Arc::new(Shared { mood: Mutex::new(Mood::Takes), posts: Mutex::default() });
        let kept = shared.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (shared, tls) = (kept.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => shared.answer(stream).await,
                            Err(_) => None,
                        },
                        None => shared.answer(stream).await,
                    }
                });
            }
        });
        Self { url, shared, task }
    }

    pub(crate) fn is_in(&self, mood: Mood) {
        *self.shared.mood.lock().unwrap() = mood;
    }

    pub(crate) fn posts(&self) -> Vec<Post> {
        self.shared.posts.lock().unwrap().clone()
    }

    /// The accepted requests.
    pub(crate) fn taken(&self) -> Vec<Post> {
        self.posts().into_iter().filter(|post| post.mood == Mood::Takes).collect()
    }

    /// Waits until the received requests satisfy `holds`.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn(&[Post]) -> bool) -> Vec<Post> {
        let began = Instant::now();
        loop {
            let posts = self.posts();
            if holds(&posts) {
                return posts;
            }
            let texts: Vec<_> = posts.iter().map(|post| (post.mood, String::from_utf8_lossy(&post.body))).collect();
            assert!(began.elapsed() < LIMIT, "waited in vain for {what}; it was sent {texts:#?}");
            sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits until a notification of each of these topics was accepted.
    pub(crate) async fn has(&self, topics: &[&str]) -> Vec<Post> {
        let taken =
            |posts: &[Post], topic: &str| posts.iter().any(|post| post.mood == Mood::Takes && post.topic() == topic);
        self.until(&format!("{topics:?}"), |posts| topics.iter().all(|topic| taken(posts, topic))).await;
        self.taken()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    async fn answer(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) -> Option<()> {
        let (headers, body) = request(&mut stream).await?;
        let mood = *self.mood.lock().unwrap();
        self.posts.lock().unwrap().push(Post { headers, body, mood });
        let status = match mood {
            Mood::Takes => 200,
            Mood::Answers(status) => status,
            Mood::Hangs => std::future::pending().await,
        };
        let answer = format!("HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.ok()?;
        stream.shutdown().await.ok()
    }
}

/// A POST to the only path.
async fn request(stream: &mut (impl AsyncRead + Unpin)) -> Option<(BTreeMap<String, String>, Vec<u8>)> {
    let mut bytes = Vec::new();
    let end = loop {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let mut lines = head.lines();
    assert_eq!(lines.next(), Some("POST /inbox HTTP/1.1"));
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length: usize = headers["content-length"].parse().unwrap();
    let mut body = bytes.split_off(end);
    while body.len() < length {
        if stream.read_buf(&mut body).await.ok()? == 0 {
            return None;
        }
    }
    Some((headers, body))
}
