//! The links between replicas: a proxy for each direction in which one calls another, so that a test can cut them.
//! A cut is silent, as a network's is: connections stay, and what is sent on them arrives when the cut is healed.

use std::collections::BTreeMap;
use std::net::TcpListener;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::cluster::Cluster;

/// What becomes of the bytes from one replica to another, on whichever connection they travel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Passing,
    /// They wait.
    Held,
    /// Connections are reset, and so are new ones.
    Reset,
}

/// From and to, by place.
type Direction = (usize, usize);

pub(crate) struct Links {
    flows: BTreeMap<Direction, watch::Sender<Flow>>,
    /// Where the first reaches the second.
    addresses: BTreeMap<Direction, String>,
    /// Keeps them.
    _forwarder: Forwarder,
}

/// Carries connections on threads of its own, so that a test that waits for a process does not cut anybody off.
pub(crate) struct Forwarder {
    runtime: Option<Runtime>,
}

impl Forwarder {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { runtime: Some(runtime.unwrap()) }
    }

    /// Whoever comes here is led to the target.
    pub(crate) fn forward(&self, listener: TcpListener, target: String) {
        self.carry(
            listener,
            target,
            watch::Sender::new(Flow::Passing).subscribe(),
            watch::Sender::new(Flow::Passing).subscribe(),
        );
    }

    fn carry(&self, listener: TcpListener, target: String, there: watch::Receiver<Flow>, back: watch::Receiver<Flow>) {
        listener.set_nonblocking(true).unwrap();
        self.runtime.as_ref().unwrap().spawn(serve(listener, target, there, back));
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl Links {
    /// Between replicas that listen at these addresses.
    pub(crate) fn between(listeners: &[String]) -> Self {
        let forwarder = Forwarder::new();
        let places = 0..listeners.len();
        let directions = places.clone().flat_map(|from| places.clone().map(move |to| (from, to)));
        let directions: Vec<Direction> = directions.filter(|(from, to)| from != to).collect();
        let flows: BTreeMap<_, _> =
            directions.iter().map(|direction| (*direction, watch::Sender::new(Flow::Passing))).collect();
        let mut addresses = BTreeMap::new();
        for (from, to) in directions {
            let listener = TcpListener::bind("127.0.0.2:0").unwrap();
            addresses.insert((from, to), listener.local_addr().unwrap().to_string());
            let (there, back) = (flows[&(from, to)].subscribe(), flows[&(to, from)].subscribe());
            forwarder.carry(listener, listeners[to].clone(), there, back);
        }
        Self { flows, addresses, _forwarder: forwarder }
    }

    /// What the configuration of `from` says about `to`.
    pub(crate) fn address(&self, from: usize, to: usize) -> &str {
        &self.addresses[&(from, to)]
    }

    fn set(&self, flow: Flow, which: impl Fn(Direction) -> bool) {
        for (_, sender) in self.flows.iter().filter(|(direction, _)| which(**direction)) {
            sender.send_replace(flow);
        }
    }
}

impl Cluster {
    /// Neither hears the other.
    pub(crate) fn cut(&self, one: usize, other: usize) {
        self.links().set(Flow::Held, |direction| [(one, other), (other, one)].contains(&direction));
    }

    /// `to` does not hear `from`, who still hears `to`.
    pub(crate) fn cut_one_way(&self, from: usize, to: usize) {
        self.links().set(Flow::Held, |direction| direction == (from, to));
    }

    /// Nobody hears it, and it hears nobody.
    pub(crate) fn cut_off(&self, place: usize) {
        self.links().set(Flow::Held, |(from, to)| from == place || to == place);
    }

    /// The same, and everybody notices at once: connections are reset instead of falling silent.
    pub(crate) fn cut_off_loudly(&self, place: usize) {
        self.links().set(Flow::Reset, |(from, to)| from == place || to == place);
    }

    /// It hears everybody, and nobody hears it.
    pub(crate) fn mute(&self, place: usize) {
        self.links().set(Flow::Held, |(from, _)| from == place);
    }

    /// Everybody hears it, and it hears nobody.
    pub(crate) fn deafen(&self, place: usize) {
        self.links().set(Flow::Held, |(_, to)| to == place);
    }

    /// All links are whole again.
    pub(crate) fn heal(&self) {
        self.links().set(Flow::Passing, |_| true);
    }

    fn links(&self) -> &Links {
        self.links.as_ref().expect("the plan says `.with_links()`")
    }
}

/// Takes connections, which go `there` and whose answers come `back`. Ends with its runtime.
async fn serve(listener: TcpListener, target: String, there: watch::Receiver<Flow>, back: watch::Receiver<Flow>) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(connect(near, target.clone(), there.clone(), back.clone()));
    }
}

async fn connect(mut near: TcpStream, target: String, there: watch::Receiver<Flow>, back: watch::Receiver<Flow>) {
    let mut far = None;
    let carried = tokio::select! {
        () = carry(&mut near, &mut far, &target, there.clone(), back.clone()) => true,
        () = becomes(there, Flow::Reset) => false,
        () = becomes(back, Flow::Reset) => false,
    };
    if !carried {
        for stream in [Some(near), far].iter().flatten() {
            let _ = stream.set_zero_linger();
        }
    }
}

/// Returns when either side has closed the connection.
async fn carry(
    near: &mut TcpStream,
    far: &mut Option<TcpStream>,
    target: &str,
    there: watch::Receiver<Flow>,
    back: watch::Receiver<Flow>,
) {
    // A connection is made by words in both directions.
    becomes(there.clone(), Flow::Passing).await;
    becomes(back.clone(), Flow::Passing).await;
    let Ok(connected) = TcpStream::connect(target).await else {
        let _ = near.set_zero_linger();
        return;
    };
    let far = far.insert(connected);
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let ((near_in, near_out), (far_in, far_out)) = (near.split(), far.split());
    tokio::select! {
        () = pump(near_in, far_out, there) => {}
        () = pump(far_in, near_out, back) => {}
    }
}

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, flow: watch::Receiver<Flow>) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let size = from.read(&mut bytes).await.unwrap_or(0);
        // The end of a connection does not get through a cut either.
        becomes(flow.clone(), Flow::Passing).await;
        if size == 0 || to.write_all(&bytes[..size]).await.is_err() {
            return;
        }
    }
}

/// Returns when it is so; never when the links are gone.
async fn becomes(mut flow: watch::Receiver<Flow>, wanted: Flow) {
    if flow.wait_for(|now| *now == wanted).await.is_err() {
        std::future::pending::<()>().await;
    }
}
