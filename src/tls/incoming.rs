//! Connections that come in. A handshake has little time and there are few at once: where there are too many, the
//! address with the most of them under way loses its oldest, so whoever opens connections and says nothing is in nobody's
//! way but its own.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::chain;
use super::connection::Connection;
use super::credentials::Credentials;
use super::refusal::Refusal;

/// After an error of the listener itself, as when no file can be opened any more.
const ACCEPT_AGAIN_AFTER: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub handshake_within: Duration,
    pub handshakes: usize,
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            handshake_within: Duration::from_secs(3),
            handshakes: 64,
            // Each of 100 replicas has one, and `doctor` another for a moment.
            connections: 512,
        }
    }
}

/// Those that show a certificate of this cluster, until `stop`.
pub fn incoming(
    listener: TcpListener,
    credentials: Arc<Credentials>,
    limits: Limits,
    stop: CancellationToken,
) -> impl Stream<Item = io::Result<Connection>> {
    let (send, met) = mpsc::channel(16);
    let door = Door { credentials, limits, places: Arc::new(Semaphore::new(limits.connections)), send };
    tokio::spawn(async move { stop.run_until_cancelled(door.keep(listener)).await });
    ReceiverStream::new(met).map(Ok)
}

#[derive(Clone)]
struct Door {
    credentials: Arc<Credentials>,
    limits: Limits,
    places: Arc<Semaphore>,
    send: mpsc::Sender<Connection>,
}

impl Door {
    async fn keep(self, listener: TcpListener) {
        let mut handshakes = JoinSet::new();
        let mut under_way: VecDeque<(IpAddr, AbortHandle)> = VecDeque::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, from)) => {
                        under_way.retain(|(_, handshake)| !handshake.is_finished());
                        if under_way.len() >= self.limits.handshakes {
                            self.give_up_one(&mut under_way);
                        }
                        let handshake = handshakes.spawn(self.clone().greet(stream, from));
                        under_way.push_back((from.ip(), handshake));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "no connection can be accepted between replicas");
                        sleep(ACCEPT_AGAIN_AFTER).await;
                    }
                },
                Some(_) = handshakes.join_next() => {}
            }
        }
    }

    fn give_up_one(&self, under_way: &mut VecDeque<(IpAddr, AbortHandle)>) {
        let victim = victim(under_way.iter().map(|(from, _)| *from));
        if let Some((from, handshake)) = victim.and_then(|place| under_way.remove(place)) {
            handshake.abort();
            self.credentials.refused(&from.to_string(), &Refusal::Unfinished);
        }
    }

    async fn greet(self, stream: TcpStream, from: SocketAddr) {
        let met = timeout(self.limits.handshake_within, self.handshake(stream, from)).await;
        match met.unwrap_or(Err(Refusal::Unfinished)) {
            // Nobody waits for it any more when the listener stops.
            Ok(connection) => drop(self.send.send(connection).await),
            Err(refusal) => self.credentials.refused(&from.ip().to_string(), &refusal),
        }
    }

    async fn handshake(&self, stream: TcpStream, from: SocketAddr) -> Result<Connection, Refusal> {
        let failed = |error: io::Error| Refusal::of(&error);
        stream.set_nodelay(true).map_err(failed)?;
        let config = self.credentials.to_be_dialled().map_err(|error| Refusal::Other(error.to_string()))?;
        let stream = TlsAcceptor::from(config).accept(stream).await.map_err(failed)?;
        let certificates = stream.get_ref().1.peer_certificates();
        let names = chain::names(certificates.and_then(<[_]>::first).ok_or(Refusal::NoCertificate)?)?;
        let place = self.places.clone().try_acquire_owned().map_err(|_| Refusal::TooMany)?;
        let caller = Caller::new(self.credentials.clone(), names, &from.ip().to_string());
        Ok(Connection::new(stream, caller, Some(place)))
    }
}

/// The oldest of the address that has the most.
fn victim(under_way: impl Iterator<Item = IpAddr>) -> Option<usize> {
    let mut of_each: BTreeMap<IpAddr, (usize, usize)> = BTreeMap::new();
    for (place, from) in under_way.enumerate() {
        of_each.entry(from).or_insert((0, place)).0 += 1;
    }
    // Of two that have as many, the one whose oldest is older.
    let most = of_each.into_values().max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)));
    most.map(|(_, oldest)| oldest)
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn of(last: &[u8]) -> Option<usize> {
        victim(last.iter().map(|last| Ipv4Addr::new(10, 0, 0, *last).into()))
    }

    #[test]
    fn whoever_has_the_most_handshakes_under_way_loses_its_oldest() {
        assert_eq!(of(&[1, 9, 9, 2, 9]), Some(1));
        assert_eq!(of(&[9, 1, 2, 3]), Some(0));
        assert_eq!(of(&[1, 2, 2, 1]), Some(0));
        assert_eq!(of(&[]), None);
    }
}
