//! The links between replicas: a proxy for each direction of calls, so that a test can cut a link or slow a link down.
//! A cut is silent, as in a network: connections stay, and bytes sent meanwhile arrive when the cut is healed.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::cluster::Cluster;

/// Treatment of the bytes from one replica to another, on any connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Passing,
    /// Bytes arrive later by this duration.
    Slow(Duration),
    /// Bytes wait.
    Held,
    /// Existing and new connections are reset.
    Reset,
}

/// One direction of a link, as used by its carriers.
#[derive(Clone)]
struct Way {
    flow: watch::Receiver<Flow>,
    disturbed: Arc<AtomicUsize>,
}

/// Source and target, by place.
type Direction = (usize, usize);

pub(crate) struct Links {
    flows: BTreeMap<Direction, watch::Sender<Flow>>,
    /// The address at which the first replica reaches the second.
    addresses: BTreeMap<Direction, String>,
    /// How often bytes or connections were held, reset or slowed down.
    disturbed: Arc<AtomicUsize>,
    /// Keeps the proxies running.
    _forwarder: Forwarder,
}

/// Carries connections on separate threads, so that a test that waits for a process interrupts no connection.
pub(crate) struct Forwarder {
    runtime: Option<Runtime>,
}

impl Forwarder {
    pub(crate) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Self { runtime: Some(runtime.unwrap()) }
    }

    /// Forwards each accepted connection to the target.
    pub(crate) fn forward(&self, listener: TcpListener, target: String) {
        let open = || Way { flow: watch::Sender::new(Flow::Passing).subscribe(), disturbed: Arc::default() };
        self.carry(listener, target, open(), open());
    }

    fn carry(&self, listener: TcpListener, target: String, there: Way, back: Way) {
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
    /// Creates the links between replicas that listen at these addresses.
    pub(crate) fn between(listeners: &[String]) -> Self {
        let forwarder = Forwarder::new();
        let places = 0..listeners.len();
        let directions = places.clone().flat_map(|from| places.clone().map(move |to| (from, to)));
        let directions: Vec<Direction> = directions.filter(|(from, to)| from != to).collect();
        let flows: BTreeMap<_, _> =
            directions.iter().map(|direction| (*direction, watch::Sender::new(Flow::Passing))).collect();
        let mut addresses = BTreeMap::new();
        let disturbed = Arc::default();
        for (from, to) in directions {
            let listener = TcpListener::bind("127.0.0.2:0").unwrap();
            addresses.insert((from, to), listener.local_addr().unwrap().to_string());
            let way = |direction| {
                let flow = watch::Sender::<Flow>::subscribe(&flows[&direction]);
                Way { flow, disturbed: Arc::clone(&disturbed) }
            };
            forwarder.carry(listener, listeners[to].clone(), way((from, to)), way((to, from)));
        }
        Self { flows, addresses, disturbed, _forwarder: forwarder }
    }

    /// The address of `to` in the configuration of `from`.
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
    /// Cuts both directions between two replicas.
    pub(crate) fn cut(&self, one: usize, other: usize) {
        self.links().set(Flow::Held, |direction| [(one, other), (other, one)].contains(&direction));
    }

    /// Cuts the direction from `from` to `to`; the opposite direction stays.
    pub(crate) fn cut_one_way(&self, from: usize, to: usize) {
        self.links().set(Flow::Held, |direction| direction == (from, to));
    }

    /// Cuts both directions between a replica and all other replicas.
    pub(crate) fn cut_off(&self, place: usize) {
        self.links().set(Flow::Held, |(from, to)| from == place || to == place);
    }

    /// Resets all connections of a replica instead of holding the bytes, so that every replica notices at once.
    pub(crate) fn cut_off_loudly(&self, place: usize) {
        self.links().set(Flow::Reset, |(from, to)| from == place || to == place);
    }

    /// Cuts all directions from a replica; the replica still receives.
    pub(crate) fn mute(&self, place: usize) {
        self.links().set(Flow::Held, |(from, _)| from == place);
    }

    /// Cuts all directions to a replica; the replica still sends.
    pub(crate) fn deafen(&self, place: usize) {
        self.links().set(Flow::Held, |(_, to)| to == place);
    }

    /// Delays all bytes from and to a replica by `by`.
    pub(crate) fn slow_down(&self, place: usize, by: Duration) {
        self.links().set(Flow::Slow(by), |(from, to)| from == place || to == place);
    }

    /// How often bytes or connections were held, reset or slowed down so far.
    pub(crate) fn disturbed(&self) -> usize {
        self.links().disturbed.load(Ordering::Relaxed)
    }

    /// Restores all links.
    pub(crate) fn heal(&self) {
        self.links().set(Flow::Passing, |_| true);
    }

    fn links(&self) -> &Links {
        self.links.as_ref().expect("the plan says `.with_links()`")
    }
}

/// Accepts connections; requests go `there`, answers come `back`. Ends with the runtime.
async fn serve(listener: TcpListener, target: String, there: Way, back: Way) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    while let Ok((near, _)) = listener.accept().await {
        tokio::spawn(connect(near, target.clone(), there.clone(), back.clone()));
    }
}

async fn connect(mut near: TcpStream, target: String, there: Way, back: Way) {
    let mut far = None;
    let carried = tokio::select! {
        () = carry(&mut near, &mut far, &target, there.clone(), back.clone()) => true,
        () = there.is_reset() => false,
        () = back.is_reset() => false,
    };
    if !carried {
        there.disturbed.fetch_add(1, Ordering::Relaxed);
        for stream in [Some(near), far].iter().flatten() {
            let _ = stream.set_zero_linger();
        }
    }
}

/// Returns when either side has closed the connection.
async fn carry(near: &mut TcpStream, far: &mut Option<TcpStream>, target: &str, there: Way, back: Way) {
    // A connection handshake needs both directions.
    there.passes().await;
    back.passes().await;
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

async fn pump(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, way: Way) {
    let mut bytes = [0; 16 * 1024];
    loop {
        let size = from.read(&mut bytes).await.unwrap_or(0);
        // A cut also holds the end of a connection.
        way.passes().await;
        if size == 0 || to.write_all(&bytes[..size]).await.is_err() {
            return;
        }
    }
}

impl Way {
    /// Returns when bytes received by now may pass; never returns when the links are gone.
    async fn passes(&self) {
        if *self.flow.borrow() != Flow::Passing {
            self.disturbed.fetch_add(1, Ordering::Relaxed);
        }
        if let Flow::Slow(by) = self.becomes(|flow| matches!(flow, Flow::Passing | Flow::Slow(_))).await {
            tokio::time::sleep(by).await;
        }
    }

    async fn is_reset(&self) {
        self.becomes(|flow| *flow == Flow::Reset).await;
    }

    async fn becomes(&self, such: impl FnMut(&Flow) -> bool) -> Flow {
        let became = self.flow.clone().wait_for(such).await.map(|flow| *flow);
        match became {
            Ok(flow) => flow,
            Err(_) => std::future::pending().await,
        }
    }
}
