//! The attacks of a hostile program on one connection, repeated.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use allclear::wire::pb::allclear::workload::v1 as pb;
use allclear::wire::pb::allclear::workload::v1::from_workload::Message as Says;
use allclear::wire::pb::allclear::workload::v1::report::News;
use allclear::wire::pb::allclear::workload::v1::workloads_client::WorkloadsClient;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;

use super::frames::{ACK, DATA, PING, RESET, SETTINGS, beginning, call, frame, message, whole_call};

/// Time before an attack is repeated.
const PAUSE: Duration = Duration::from_secs(1);
const GIBIBYTE: u32 = 1 << 30;

pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Target {
    Socket(PathBuf),
    Port(SocketAddr),
}

impl Target {
    pub(crate) async fn dial(&self) -> std::io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Socket(path) => Box::new(UnixStream::connect(path).await?),
            Self::Port(address) => Box::new(TcpStream::connect(address).await?),
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Attack {
    /// Connects and sends nothing.
    Silence,
    /// Sends these bytes one by one.
    Drip(&'static [u8]),
    /// Sends these bytes and then the letter `a` without end.
    Endless(&'static [u8]),
    /// Begins a call, announces a message of 1 GiB, and sends the message.
    Gigantic(&'static str),
    /// A frame that announces the greatest possible length.
    GiantFrame,
    /// A hundred calls without a message.
    OpenCalls(&'static str),
    /// Sends as many requests as possible, and reads nothing.
    NeverReads(&'static str),
    NeverReadsHttp(&'static str),
    /// Begins calls and resets them.
    Resets(&'static str),
    Pings,
    Settings,
    /// Sends a request, reads the answer, and sends the next request.
    Asks(&'static str),
    AsksHttp(&'static str),
    /// Registers workloads with forbidden names, and workloads with registrations that change all the time.
    Registers,
    /// Reports on steps without an assignment.
    Reports,
}

impl Attack {
    /// Repeats the attack without end, and counts the attempts.
    pub(crate) async fn go_on(self, target: Target, number: usize, begun: Arc<AtomicU64>) {
        // Attackers start at different times.
        sleep(PAUSE * u32::try_from(number % 100).unwrap() / 100).await;
        loop {
            // The attack is repeated however the replica reacts.
            let _ = self.strike(&target, number, &begun).await;
            sleep(PAUSE).await;
        }
    }

    async fn strike(self, target: &Target, number: usize, begun: &AtomicU64) -> std::io::Result<()> {
        let count = || begun.fetch_add(1, Ordering::Relaxed);
        match (self, target) {
            (Self::Registers, Target::Socket(path)) => return register(path, number, begun).await,
            (Self::Reports, Target::Socket(path)) => return report(path, number, begun).await,
            _ => {}
        }
        let mut stream = target.dial().await?;
        count();
        match self {
            Self::Silence => stream.read_u8().await.map(drop),
            Self::Drip(words) => drip(&mut stream, words).await,
            Self::Endless(words) => {
                stream.write_all(words).await?;
                pour(&mut stream, &[b'a'; 16 << 10]).await
            }
            Self::Gigantic(path) => {
                let mut bytes = beginning();
                bytes.extend(call(1, path));
                bytes.extend(frame(DATA, 0, 1, &message(GIBIBYTE, &[0; 1024])));
                stream.write_all(&bytes).await?;
                pour(&mut stream, &frame(DATA, 0, 1, &[0; 16 << 10])).await
            }
            Self::GiantFrame => {
                let mut bytes = beginning();
                bytes.extend([0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]);
                stream.write_all(&bytes).await?;
                pour(&mut stream, &[0; 16 << 10]).await
            }
            Self::OpenCalls(path) => {
                let calls = (0..100).flat_map(|number| call(2 * number + 1, path));
                stream.write_all(&beginning().into_iter().chain(calls).collect::<Vec<_>>()).await?;
                keep_alive(&mut stream).await
            }
            Self::NeverReads(path) => {
                stream.write_all(&beginning()).await?;
                for number in 0.. {
                    stream.write_all(&whole_call(2 * number + 1, path)).await?;
                    count();
                }
                Ok(())
            }
            Self::NeverReadsHttp(path) => {
                let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
                loop {
                    stream.write_all(request.as_bytes()).await?;
                    count();
                }
            }
            Self::Resets(path) => {
                let pair = |number: u32| {
                    let stream = 2 * number + 1;
                    [call(stream, path), frame(RESET, 0, stream, &[0, 0, 0, 8])].concat()
                };
                burst(&mut stream, begun, pair).await
            }
            Self::Pings => burst(&mut stream, begun, |_| frame(PING, 0, 0, &[0; 8])).await,
            Self::Settings => burst(&mut stream, begun, |_| frame(SETTINGS, 0, 0, &[])).await,
            Self::Asks(path) => asks(&mut stream, path, count).await,
            Self::AsksHttp(path) => asks_http(&mut stream, path, count).await,
            Self::Registers | Self::Reports => unreachable!("workloads have a socket"),
        }
    }
}

async fn drip(stream: &mut Box<dyn Stream>, words: &[u8]) -> std::io::Result<()> {
    for byte in words.iter().cycle() {
        stream.write_all(&[*byte]).await?;
        // The replica may close the connection.
        let _ = timeout(Duration::from_millis(100), stream.read(&mut [0; 64])).await;
    }
    Ok(())
}

async fn asks(stream: &mut Box<dyn Stream>, path: &str, count: impl Fn() -> u64) -> std::io::Result<()> {
    stream.write_all(&beginning()).await?;
    for number in 0.. {
        stream.write_all(&whole_call(2 * number + 1, path)).await?;
        count();
        // Read the reaction, an answer or not.
        let _ = timeout(PAUSE, stream.read(&mut vec![0; 16 << 10])).await;
    }
    Ok(())
}

async fn asks_http(stream: &mut Box<dyn Stream>, path: &str, count: impl Fn() -> u64) -> std::io::Result<()> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    loop {
        stream.write_all(request.as_bytes()).await?;
        count();
        if stream.read(&mut vec![0; 64 << 10]).await? == 0 {
            return Ok(());
        }
    }
}

/// Sends the same bytes again and again, while everything received is read.
async fn pour(stream: &mut Box<dyn Stream>, bytes: &[u8]) -> std::io::Result<()> {
    let (hears, says) = tokio::io::split(stream);
    tokio::select! {
        ended = says_for_ever(says, || bytes.to_vec()) => ended,
        ended = hears_all(hears) => ended,
    }
}

/// Sends frames without end, a thousand at a time, however the replica reacts.
async fn burst(stream: &mut Box<dyn Stream>, begun: &AtomicU64, one: impl Fn(u32) -> Vec<u8>) -> std::io::Result<()> {
    stream.write_all(&beginning()).await?;
    let (hears, says) = tokio::io::split(stream);
    let mut from = 0;
    let thousand = || {
        from += 1000;
        begun.fetch_add(1000, Ordering::Relaxed);
        (from - 1000..from).flat_map(&one).collect()
    };
    tokio::select! {
        ended = says_for_ever(says, thousand) => ended,
        ended = hears_all(hears) => ended,
    }
}

async fn says_for_ever(mut says: impl AsyncWrite + Unpin, mut words: impl FnMut() -> Vec<u8>) -> std::io::Result<()> {
    loop {
        says.write_all(&words()).await?;
    }
}

async fn hears_all(mut hears: impl AsyncRead + Unpin) -> std::io::Result<()> {
    while hears.read(&mut [0; 4096]).await? > 0 {}
    Ok(())
}

/// Acknowledges pings and settings of the replica.
async fn keep_alive(stream: &mut Box<dyn Stream>) -> std::io::Result<()> {
    loop {
        let mut head = [0; 9];
        stream.read_exact(&mut head).await?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        stream.read_exact(&mut payload).await?;
        if [PING, SETTINGS].contains(&head[3]) && head[4] & ACK == 0 {
            let answer = if head[3] == PING { payload } else { Vec::new() };
            stream.write_all(&frame(head[3], ACK, 0, &answer)).await?;
        }
    }
}

async fn client(path: &std::path::Path) -> std::io::Result<WorkloadsClient<tonic::transport::Channel>> {
    let endpoint = Endpoint::from_shared(format!("unix://{}", path.display())).map_err(std::io::Error::other)?;
    Ok(WorkloadsClient::new(endpoint.connect().await.map_err(std::io::Error::other)?))
}

async fn register(path: &std::path::Path, number: usize, begun: &AtomicU64) -> std::io::Result<()> {
    let mut client = client(path).await?;
    let huge = pb::Hello { versions: vec![1], workload: "x".repeat(60_000), ..pb::Hello::default() };
    for turn in 0.. {
        // A different lease makes a different registration.
        let changed = pb::Hello {
            versions: vec![1],
            workload: format!("flood-{number}"),
            boot: "flood".into(),
            hooks: vec![pb::Hook {
                phase: pb::Phase::Checkpoint.into(),
                attempts: Some(1 + turn % 90),
                ..pb::Hook::default()
            }],
            ..pb::Hello::default()
        };
        begun.fetch_add(2, Ordering::Relaxed);
        let (first, second) = (client.register(huge.clone()).await, client.register(changed).await);
        if first.is_ok() || second.is_err_and(|status| status.code() == tonic::Code::Unavailable) {
            return Ok(());
        }
    }
    Ok(())
}

async fn report(path: &std::path::Path, number: usize, begun: &AtomicU64) -> std::io::Result<()> {
    let mut client = client(path).await?;
    let (says, messages) = mpsc::channel(64);
    let hello = pb::Hello {
        versions: vec![1],
        workload: format!("reports-{number}"),
        boot: "flood".into(),
        ..pb::Hello::default()
    };
    let _ = says.send(pb::FromWorkload { message: Some(Says::Hello(hello)) }).await;
    let told = client.session(ReceiverStream::new(messages)).await.map_err(std::io::Error::other)?;
    // Never read.
    let _told = told.into_inner();
    for turn in 0.. {
        let progress = pb::Progress { text: "x".repeat(30_000), ..pb::Progress::default() };
        let report = pb::Report { attempt: format!("made-up-{turn}"), news: Some(News::Progress(progress)) };
        if says.send(pb::FromWorkload { message: Some(Says::Report(report)) }).await.is_err() {
            return Ok(());
        }
        begun.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}
