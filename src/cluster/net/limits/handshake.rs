//! The handshake gate of a listener: each connection is handled separately, within a time, until accepted.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::connection::{BoundedConnection, ConnectionBounds, ConnectionHold, ReadRate};
use super::connection_limit::{ConnectionLimit, ConnectionPermit};
use super::evicting_limit::{EvictingLimit, EvictingPermit};
use super::frames::Frames;
use super::listener::{ClientKey, Listener};
use super::log_limit::RejectionLog;
use super::rate_limit::RateLimiters;

/// The pause after an error of the listener itself, as when no file can be opened any more.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);
/// The maximum of connections accepted and not served yet.
const LET_IN: usize = 16;
/// The length of the HTTP/2 client preface.
const PREFACE_BYTES: usize = 24;
/// The time without a possible write after which a connection is closed; over HTTP/1, the time without a write.
const READS_WITHIN: Duration = Duration::from_secs(10);
/// In bytes, over HTTP/1.
const LONGEST_QUESTION: usize = 16 << 10;

/// The limits before a connection is accepted.
#[derive(Clone, Copy, Debug)]
pub struct HandshakeGate {
    /// The timeout of the first bytes, or of other work before a connection is accepted.
    pub within: Duration,
    /// The maximum of connections that are not accepted yet.
    pub most: usize,
}

impl Default for HandshakeGate {
    fn default() -> Self {
        Self { within: Duration::from_secs(3), most: 64 }
    }
}

/// Accepts connections of one kind.
pub trait Acceptor<S>: Send + Sync + 'static {
    type Guest: Send + 'static;
    /// Whether an accepted client has proved who it is. The gate then evicts the client's later connections after those
    /// of strangers: many strangers could otherwise keep the client out.
    const IS_PROOF: bool = false;

    /// The connection to serve, if accepted.
    fn accept(&self, stream: S, who: ClientKey) -> impl Future<Output = Option<Self::Guest>> + Send;

    /// Called for a connection that took too long, or was evicted at the gate.
    fn rejected(&self, who: ClientKey);
}

/// The accepted connections.
pub struct Incoming<G>(mpsc::Receiver<G>);

/// Accepts connections until `stop`.
pub fn incoming<L: Listener, P: Acceptor<L::Stream>>(
    listener: L,
    door: HandshakeGate,
    porter: P,
    stop: CancellationToken,
) -> Incoming<P::Guest> {
    let (send, met) = mpsc::channel(LET_IN);
    tokio::spawn(async move { stop.run_until_cancelled(keep(listener, door, Arc::new(porter), send)).await });
    Incoming(met)
}

impl<G> Incoming<G> {
    /// The stream for tonic.
    pub fn into_stream(self) -> impl Stream<Item = io::Result<G>> {
        ReceiverStream::new(self.0).map(Ok)
    }
}

/// The listener for axum.
impl axum::serve::Listener for Incoming<BoundedConnection<TcpStream>> {
    type Io = BoundedConnection<TcpStream>;
    type Addr = ClientKey;

    async fn accept(&mut self) -> (Self::Io, ClientKey) {
        match self.0.recv().await {
            Some(guest) => {
                let from = guest.stream().peer_addr();
                (guest, from.map_or(ClientKey::Anybody, ClientKey::of))
            }
            // The listener stops, and the caller with it.
            None => std::future::pending().await,
        }
    }

    fn local_addr(&self) -> io::Result<ClientKey> {
        Ok(ClientKey::Anybody)
    }
}

async fn keep<L: Listener, P: Acceptor<L::Stream>>(
    listener: L,
    door: HandshakeGate,
    porter: Arc<P>,
    send: mpsc::Sender<P::Guest>,
) {
    let mut crowd = EvictingLimit::new(door.most);
    let reception = Reception { porter, within: door.within, send };
    let mut meetings = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(met) = meetings.join_next() => if let Ok(Some(who)) = met && P::IS_PROOF {
                crowd.has_proved(who);
            },
            accepted = listener.accept() => match accepted {
                Ok((stream, who)) => {
                    let (stay, gone) = crowd.acquire(who);
                    if let Some(gone) = gone {
                        reception.porter.rejected(gone);
                    }
                    meetings.spawn(shake_hands(stream, who, stay, reception.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "connection not accepted");
                    sleep(ACCEPT_AGAIN_AFTER).await;
                }
            },
        }
    }
}

/// The data shared by all handshakes of a listener.
struct Reception<P, G> {
    porter: Arc<P>,
    within: Duration,
    send: mpsc::Sender<G>,
}

impl<P, G> Clone for Reception<P, G> {
    fn clone(&self) -> Self {
        Self { porter: self.porter.clone(), within: self.within, send: self.send.clone() }
    }
}

/// The client, if accepted.
async fn shake_hands<S, P: Acceptor<S>>(
    stream: S,
    who: ClientKey,
    stay: EvictingPermit,
    Reception { porter, within, send }: Reception<P, P::Guest>,
) -> Option<ClientKey> {
    let met = tokio::select! {
        biased;
        met = timeout(within, porter.accept(stream, who)) => met,
        () = stay.evicted() => return None,
    };
    drop(stay);
    let Ok(guest) = met else {
        porter.rejected(who);
        return None;
    };
    // The receiver is gone when the listener stops.
    send.send(guest?).await.ok()?;
    Some(who)
}

/// Accepts a connection that has sent as many bytes as an HTTP/2 preface. The content is checked by the server.
pub struct Http2 {
    pub places: ConnectionLimit,
    /// In bytes; frame by frame if `None`.
    pub paces: Option<RateLimiters<ClientKey>>,
    pub turned_away: RejectionLog,
}

impl<S> Acceptor<S> for Http2
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Guest = BoundedConnection<S>;

    async fn accept(&self, mut stream: S, who: ClientKey) -> Option<BoundedConnection<S>> {
        let mut begun = vec![0; PREFACE_BYTES];
        // A connection closed without a byte had no request.
        stream.read_exact(&mut begun).await.ok()?;
        let Some(place) = self.places.acquire(who) else {
            self.turned_away.no_place(who);
            return None;
        };
        Some(match &self.paces {
            Some(paces) => by_http2(stream, begun, place, ReadRate::Bytes(paces.of(who))),
            None => by_http2(stream, begun, place, ReadRate::Frames(Frames::after(0))),
        })
    }

    fn rejected(&self, who: ClientKey) {
        self.turned_away.note(who, "the client has open connections without a request");
    }
}

/// A connection from another acceptor, about to begin HTTP/2, limited frame by frame.
pub fn by_frames<S, W: Ord + Send + 'static>(stream: S, place: ConnectionPermit<W>) -> BoundedConnection<S> {
    by_http2(stream, Vec::new(), place, ReadRate::Frames(Frames::after(PREFACE_BYTES)))
}

fn by_http2<S>(stream: S, begun: Vec<u8>, place: impl Into<ConnectionHold>, measure: ReadRate) -> BoundedConnection<S> {
    let manners =
        ConnectionBounds { footing: place.into(), measure, reads_within: READS_WITHIN, longest_question: None };
    BoundedConnection::new(stream, begun, manners)
}

/// Accepts a connection after its first bytes, and when full evicts a connection of the client with most connections: a
/// client that only reads may be disconnected at any time, and connects again.
pub struct Http1 {
    pub crowd: Mutex<EvictingLimit>,
    /// In bytes, for all connections.
    pub paces: RateLimiters<ClientKey>,
    pub turned_away: RejectionLog,
}

impl Acceptor<TcpStream> for Http1 {
    type Guest = BoundedConnection<TcpStream>;

    async fn accept(&self, stream: TcpStream, who: ClientKey) -> Option<BoundedConnection<TcpStream>> {
        if stream.peek(&mut [0]).await.ok()? == 0 {
            return None;
        }
        let (stay, gone) = self.crowd.lock().unwrap_or_else(PoisonError::into_inner).acquire(who);
        if let Some(gone) = gone {
            self.turned_away.note(gone, "the client has too many connections open");
        }
        let manners = ConnectionBounds {
            footing: stay.into(),
            measure: ReadRate::Bytes(self.paces.of(ClientKey::Anybody)),
            reads_within: READS_WITHIN,
            longest_question: Some(LONGEST_QUESTION),
        };
        Some(BoundedConnection::new(stream, Vec::new(), manners))
    }

    fn rejected(&self, who: ClientKey) {
        self.turned_away.note(who, "the client has open connections without a request");
    }
}

#[cfg(test)]
mod tests;
