//! A metadata service with every ability of a socket: a small HTTP server on loopback, by hand.
//!
//! The server records all requests, and the maximum number of simultaneous requests.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

/// For every wait of a test.
pub(crate) const LIMIT: Duration = Duration::from_mins(2);

/// The answer to a request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// Sends these bytes, and closes the connection.
    Bytes(Vec<u8>),
    /// Sends these bytes, and keeps the connection for the next request.
    Keep(Vec<u8>),
    /// Sends these bytes, after this duration.
    Late(Duration, Vec<u8>),
    /// Sends these bytes, and then nothing more, with the connection open.
    Hang(Vec<u8>),
    /// Sends these bytes one by one, slowly, until the client gives up.
    Drip(Vec<u8>),
    /// Sends these bytes, and then 64 MiB of spaces, far more than fits between two programs.
    Flood(Vec<u8>),
    /// Sends these bytes, and then a reset.
    Reset(Vec<u8>),
}

/// A received request.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The number of the connection, from 0.
    pub(crate) connection: usize,
    /// Method and target, as in `GET /metadata/…`.
    pub(crate) line: String,
    /// Lines as they were sent.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
}

impl Request {
    pub(crate) fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.eq_ignore_ascii_case(header))
    }

    pub(crate) fn names(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.split(':').next().is_some_and(|name| name.eq_ignore_ascii_case(header)))
    }
}

#[derive(Default)]
struct Seen {
    requests: Vec<Request>,
    under_way: usize,
    most_under_way: usize,
}

type Handler = dyn FnMut(&Request) -> Answer + Send;

struct Shared {
    seen: Mutex<Seen>,
    count: watch::Sender<usize>,
    written: watch::Sender<Vec<bool>>,
    handler: Mutex<Box<Handler>>,
}

pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Server {
    pub(crate) async fn start(handler: impl FnMut(&Request) -> Answer + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            count: watch::Sender::new(0),
            written: watch::Sender::default(),
            handler: Mutex::new(Box::new(handler)),
        });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, accepting }
    }

    /// Sends one answer to every request.
    pub(crate) async fn saying(answer: Answer) -> Self {
        Self::start(move |_| answer.clone()).await
    }

    /// Sends one answer after the other; the last answer is repeated.
    pub(crate) async fn telling(answers: Vec<Answer>) -> Self {
        let mut told = 0;
        Self::start(move |_| {
            told += 1;
            answers[told.min(answers.len()) - 1].clone()
        })
        .await
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn requests(&self) -> Vec<Request> {
        lock(&self.shared.seen).requests.clone()
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.line).collect()
    }

    pub(crate) fn most_under_way(&self) -> usize {
        lock(&self.shared.seen).most_under_way
    }

    /// True if the client read the first answer to its end.
    pub(crate) async fn was_read_to_its_end(&self) -> bool {
        let mut written = self.shared.written.subscribe();
        let first = written.wait_for(|written| !written.is_empty());
        tokio::time::timeout(LIMIT, first).await.expect("not answered in time").unwrap()[0]
    }

    pub(crate) async fn has_been_asked(&self, times: usize) {
        let mut count = self.shared.count.subscribe();
        let asked = count.wait_for(|count| *count >= times);
        tokio::time::timeout(LIMIT, asked).await.expect("not asked in time").unwrap();
    }
}

fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

/// Ends with every connection when the server is dropped.
async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    for connection in 0.. {
        let Ok((mut stream, _)) = listener.accept().await else { return };
        let shared = Arc::clone(&shared);
        connections.spawn(async move {
            while let Some(request) = read(&mut stream, connection).await {
                if !serve(&mut stream, request, &shared).await {
                    return;
                }
            }
        });
    }
}

/// One request, or `None` if the client has disconnected.
async fn read(stream: &mut TcpStream, connection: usize) -> Option<Request> {
    let mut bytes = Vec::new();
    let head = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        (stream.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    };
    let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
    let mut lines = text.lines().map(str::to_owned);
    let line = lines.next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    let headers = lines.collect::<Vec<_>>();
    let length =
        headers.iter().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse().ok());
    let whole = head + 4 + length.unwrap_or(0);
    while bytes.len() < whole {
        (stream.read_buf(&mut bytes).await.ok()? > 0).then_some(())?;
    }
    Some(Request { connection, line, headers, body: String::from_utf8_lossy(&bytes[head + 4..whole]).into_owned() })
}

/// True if the connection stays open.
async fn serve(stream: &mut TcpStream, request: Request, shared: &Shared) -> bool {
    let answer = (lock(&shared.handler))(&request);
    {
        let mut seen = lock(&shared.seen);
        seen.requests.push(request);
        seen.under_way += 1;
        seen.most_under_way = seen.most_under_way.max(seen.under_way);
    }
    shared.count.send_modify(|count| *count += 1);
    let stays = matches!(answer, Answer::Keep(_));
    if let Answer::Late(delay, _) = &answer {
        tokio::time::sleep(*delay).await;
    }
    // Before the last byte is sent: the next request cannot be under way earlier.
    lock(&shared.seen).under_way -= 1;
    let written = write(stream, answer).await.is_ok();
    shared.written.send_modify(|all| all.push(written));
    stays
}

async fn write(stream: &mut TcpStream, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Bytes(bytes) | Answer::Late(_, bytes) => {
            stream.write_all(&bytes).await?;
            stream.shutdown().await
        }
        Answer::Keep(bytes) => stream.write_all(&bytes).await,
        Answer::Hang(bytes) => {
            stream.write_all(&bytes).await?;
            // Until the client closes.
            stream.read_u8().await.map(drop)
        }
        Answer::Drip(bytes) => {
            for byte in bytes.iter().chain(std::iter::repeat(&b' ')) {
                stream.write_all(&[*byte]).await?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            Ok(())
        }
        Answer::Flood(bytes) => {
            stream.write_all(&bytes).await?;
            let spaces = vec![b' '; 65536];
            for _ in 0..1024 {
                stream.write_all(&spaces).await?;
            }
            Ok(())
        }
        Answer::Reset(bytes) => {
            stream.write_all(&bytes).await?;
            stream.set_zero_linger()
        }
    }
}
