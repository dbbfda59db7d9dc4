//! What the messages of a last hook cost by themselves: programs that send each other nothing else, over the libraries
//! that replicas use, and sync as many bytes. No state, no log, no decision: what replicas take beyond this is theirs.
//!
//! `cargo run --release --example messages [TIMES]` starts three of them, and is itself the workload and the cloud.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::Router;
use axum::routing::get;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking, yield_now};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// About one entry of the log.
const ENTRY_BYTES: usize = 200;
/// As `allclear bench` has it.
const PAUSE: Duration = Duration::from_millis(50);
const TIMES: u32 = 20;
const WITHIN: Duration = Duration::from_secs(10);

/// One of three; the first is the leader.
struct Replica {
    file: Arc<Mutex<File>>,
    others: Vec<HealthClient<Channel>>,
    http: reqwest::Client,
    cloud: String,
}

/// What is said stands where the health service expects a name.
async fn say(mut to: HealthClient<Channel>, what: String) -> Result<(), Status> {
    to.check(HealthCheckRequest { service: what }).await.map(drop)
}

impl Replica {
    fn ask_both(&self, what: &str) -> JoinSet<anyhow::Result<()>> {
        let mut asked = JoinSet::new();
        for other in self.others.iter().cloned() {
            let what = what.to_owned();
            asked.spawn(async move { Ok(say(other, what).await?) });
        }
        asked
    }

    async fn approve(&self) -> anyhow::Result<()> {
        let mut appended = self.ask_both(&format!("append {}", "e".repeat(ENTRY_BYTES)));
        appended.spawn(write(self.file.clone()));
        // Two of three.
        let mut rest = first(first(appended).await?).await?;
        rest.detach_all();
        self.http.get(&self.cloud).send().await?.bytes().await?;
        // This one, and one of the two others.
        first(self.ask_both("confirm")).await?.detach_all();
        self.http.post(&self.cloud).body("{}").send().await?;
        Ok(())
    }
}

/// Those that are left when the first has done it. Whoever cannot ends it all.
async fn first(mut asked: JoinSet<anyhow::Result<()>>) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let done = asked.join_next().await.context("too few have done it")?;
    done??;
    Ok(asked)
}

async fn write(file: Arc<Mutex<File>>) -> anyhow::Result<()> {
    yield_now().await;
    let append = move || {
        let mut file = file.lock().map_err(|_| anyhow::anyhow!("a write was left"))?;
        file.write_all(&[0; ENTRY_BYTES])?;
        Ok(file.sync_data()?)
    };
    spawn_blocking(append).await?
}

#[tonic::async_trait]
impl Health for Replica {
    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(&self, _: Request<HealthCheckRequest>) -> Result<Response<Self::WatchStream>, Status> {
        Err(Status::unimplemented("nobody watches"))
    }

    async fn check(&self, request: Request<HealthCheckRequest>) -> Result<Response<HealthCheckResponse>, Status> {
        let failed = |error: &dyn std::fmt::Display| Status::internal(error.to_string());
        match request.get_ref().service.split(' ').next() {
            Some("outcome") => say(self.others[0].clone(), "propose".into()).await?,
            Some("propose") => self.approve().await.map_err(|error| failed(&error))?,
            Some("append") => write(self.file.clone()).await.map_err(|error| failed(&error))?,
            _ => {}
        }
        Ok(Response::new(HealthCheckResponse::default()))
    }
}

fn client(address: &str) -> anyhow::Result<HealthClient<Channel>> {
    Ok(HealthClient::new(Endpoint::from_shared(format!("http://{address}"))?.tcp_nodelay(true).connect_lazy()))
}

async fn serve(listener: TcpListener, file: &str, cloud: &str, others: &[String]) -> anyhow::Result<()> {
    listener.set_nonblocking(true)?;
    let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener)?).with_nodelay(Some(true));
    let replica = Replica {
        file: Arc::new(Mutex::new(File::create(file)?)),
        others: others.iter().map(|address| client(address)).collect::<anyhow::Result<_>>()?,
        http: allclear::http_client::plain().map_err(anyhow::Error::msg)?.build()?,
        cloud: cloud.into(),
    };
    Ok(Server::builder().add_service(HealthServer::new(replica)).serve_with_incoming(incoming).await?)
}

/// Waited for when this program has done; whatever ends it, they end with it.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Nothing is ever said there.
fn end_with_the_other_end_of_stdin() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
}

async fn measure(times: u32) -> anyhow::Result<()> {
    let (posted, mut posts) = mpsc::channel(1);
    let cloud = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", cloud.local_addr()?);
    let post = async move || {
        let _ = posted.send(Instant::now()).await;
    };
    let routes = Router::new().route("/", get(async || "{\"DocumentIncarnation\":1,\"Events\":[]}").post(post));
    tokio::spawn(async move { axum::serve(cloud, routes).await });
    let folder = tempfile::tempdir()?;
    // Free when they are given away, and hardly anybody takes them within the moment.
    let free = || -> std::io::Result<_> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string()) };
    let addresses = [free()?, free()?, free()?];
    let mut running = Vec::new();
    for (place, address) in addresses.iter().enumerate() {
        let file = folder.path().join(place.to_string());
        let others = if place == 0 { &addresses[1..] } else { &addresses[..1] };
        let mut program = Command::new(std::env::current_exe()?);
        program.arg(address).arg(file).arg(&url).args(others).stdin(Stdio::piped());
        running.push(Running(program.spawn()?));
    }
    let told = client(&addresses[1])?;
    let answers = async {
        while say(told.clone(), "are you there".into()).await.is_err() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(WITHIN, answers).await.context("nobody answers")?;
    let (mut spans, mut floors) = (Vec::new(), Vec::new());
    let (mut file, mut line) = (File::create(folder.path().join("floor"))?, echo()?);
    // The first one opens the connections.
    for _ in 0..=times {
        tokio::time::sleep(PAUSE).await;
        let began = Instant::now();
        let outcome = tokio::spawn(say(told.clone(), "outcome".into()));
        let posted = timeout(WITHIN, posts.recv()).await?.context("nobody posts any more")?;
        spans.push(posted - began);
        outcome.await??;
        tokio::time::sleep(PAUSE).await;
        let began = Instant::now();
        file.write_all(&[0; ENTRY_BYTES])?;
        file.sync_data()?;
        for _ in 0..2 {
            line.write_all(&[0; ENTRY_BYTES])?;
            line.read_exact(&mut [0; ENTRY_BYTES])?;
        }
        floors.push(began.elapsed());
    }
    let of = |name, mut spans: Vec<Duration>| {
        spans.remove(0);
        spans.sort_unstable();
        println!("{name}: median {:?}, worst {:?}", spans[spans.len() / 2], spans[spans.len() - 1]);
    };
    of("from the outcome to the POST, with nothing to decide", spans);
    of("one synced write and two round trips on loopback", floors);
    Ok(())
}

/// To a thread that sends back what comes.
fn echo() -> std::io::Result<TcpStream> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    let (mut far, _) = listener.accept()?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    std::thread::spawn(move || {
        let mut bytes = [0; ENTRY_BYTES];
        while far.read_exact(&mut bytes).and_then(|()| far.write_all(&bytes)).is_ok() {}
    });
    Ok(near)
}

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [address, file, cloud, others @ ..] => {
            end_with_the_other_end_of_stdin();
            let runtime = Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(serve(TcpListener::bind(address)?, file, cloud, others))
        }
        [] => Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure(TIMES)),
        [times, ..] => {
            let times: u32 = times.parse().context("TIMES is a number")?;
            Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(measure(times.clamp(1, 1_000)))
        }
    }
}
