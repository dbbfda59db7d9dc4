//! The address of one replica, and its last error.
//!
//! The name is resolved anew at each attempt to connect, by at most one thread, and for a bounded time. While the
//! resolver gives no answer, the last addresses stay in use, so that a DNS failure does not take the cluster apart.
//! Several addresses are tried one after the other, and the first that answers is used.

use std::io;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::sync::{OwnedMutexGuard, oneshot};
use tokio::time::{sleep, timeout};

/// The timeout of the resolver's first answer.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// The timeout of a later answer: the previous addresses remain usable, and a late answer counts at the next dial.
const NEXT_WITHIN: Duration = Duration::from_millis(100);
/// The age up to which an answer is used again, so that constant dials of a dead replica do not burden the resolver.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// The interval at which unused addresses are resolved again.
const KEPT_UP_EVERY: Duration = Duration::from_mins(1);
/// The maximum of addresses per host; further addresses are ignored.
const MOST: usize = 8;
/// The timeout of each address.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);
/// The delay after which the next address is tried beside pending attempts.
const SLOW_AFTER: Duration = Duration::from_millis(150);

type Resolve = fn(&str) -> io::Result<Vec<SocketAddr>>;
type Resolution = Result<Vec<SocketAddr>, String>;
type LastResolution = Option<(Instant, Resolution)>;

/// The dial target of a replica, kept as long as the replica has this address: resolved addresses outlive a connection.
pub struct DialTarget {
    /// `host:port`
    address: String,
    resolve: Resolve,
    /// The last resolved addresses.
    known: Mutex<Vec<SocketAddr>>,
    /// The resolver's last answer; locked by the task that waits for the next answer.
    answered: Arc<tokio::sync::Mutex<LastResolution>>,
    obstacle: Mutex<Option<String>>,
}

impl DialTarget {
    /// A target at `host:port`; an IP address needs no resolver. A name is resolved by the system's rules:
    /// `/etc/hosts`, DNS and so on, in the system's order of preference.
    pub fn to(address: &str) -> Arc<Self> {
        Self::resolved_by(address, |name| Ok(name.to_socket_addrs()?.collect()))
    }

    fn resolved_by(address: &str, resolve: Resolve) -> Arc<Self> {
        let (known, answered, obstacle) = (Mutex::default(), Arc::default(), Mutex::default());
        Arc::new(Self { address: address.to_owned(), resolve, known, answered, obstacle })
    }

    /// True if a later connection may lead to another machine, because the target is a name.
    pub fn may_change(&self) -> bool {
        self.address.parse::<SocketAddr>().is_err()
    }

    /// Starts a resolution if the last answer is old, and never blocks: a dial during an outage of the resolver uses
    /// these addresses.
    pub fn keep_resolved(self: &Arc<Self>) {
        if self.may_change()
            && let Ok(answered) = self.answered.clone().try_lock_owned()
            && answered.as_ref().is_none_or(|(at, _)| at.elapsed() >= KEPT_UP_EVERY)
        {
            self.ask(answered);
        }
    }

    /// The last connection error.
    pub fn last_error(&self) -> Option<String> {
        self.obstacle.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Connects: `attempt` is called with each address until an attempt succeeds.
    ///
    /// # Errors
    /// The reason why no address was reached.
    pub async fn connect<T, F>(self: &Arc<Self>, attempt: impl Fn(SocketAddr) -> F) -> io::Result<T>
    where
        F: Future<Output = io::Result<T>>,
    {
        let gone = match self.addresses().await {
            Ok((addresses, outdated)) => happy_eyeballs(&addresses, attempt).await.map_err(|failed| match outdated {
                Some(why) => format!("{why}; the previous addresses failed: {failed}"),
                None => failed,
            }),
            Err(why) => Err(why),
        };
        *self.obstacle.lock().unwrap_or_else(PoisonError::into_inner) = gone.as_ref().err().cloned();
        gone.map_err(io::Error::other)
    }

    /// The addresses, if resolved in time; otherwise the previous addresses with the reason of the failure.
    ///
    /// # Errors
    /// The reason why no address is known.
    async fn addresses(self: &Arc<Self>) -> Result<(Vec<SocketAddr>, Option<String>), String> {
        if let Ok(address) = self.address.parse() {
            return Ok((vec![address], None));
        }
        let within = if self.known().is_empty() { FIRST_WITHIN } else { NEXT_WITHIN };
        let late = |_| Err(format!("the resolver did not answer within {within:?}"));
        let why = match timeout(within, self.answer()).await.unwrap_or_else(late) {
            Ok(addresses) => return Ok((addresses, None)),
            Err(why) => why,
        };
        let host = self.address.rsplit_once(':').map_or(self.address.as_str(), |(host, _)| host);
        let why = format!("{host} does not resolve: {why}");
        let addresses = self.known().clone();
        if addresses.is_empty() { Err(why) } else { Ok((addresses, Some(why))) }
    }

    async fn answer(self: &Arc<Self>) -> Resolution {
        let answered = self.answered.clone().lock_owned().await;
        match &*answered {
            Some((at, answer)) if at.elapsed() < FRESH_FOR => answer.clone(),
            _ => self.ask(answered).await.unwrap_or_else(|_| Err("the resolver ended without an answer".into())),
        }
    }

    /// Resolves on a separate thread, because a hanging resolver must not occupy the threads for disk writes.
    fn ask(self: &Arc<Self>, mut answered: OwnedMutexGuard<LastResolution>) -> oneshot::Receiver<Resolution> {
        let (tell, answer) = oneshot::channel();
        let way = self.clone();
        let asked = std::thread::Builder::new().name("resolver".into()).spawn(move || {
            let told = way.resolved();
            if let Ok(addresses) = &told {
                way.known().clone_from(addresses);
            }
            *answered = Some((Instant::now(), told.clone()));
            drop(answered);
            let _ = tell.send(told);
        });
        if let Err(error) = asked {
            tracing::warn!(%error, "resolver thread not started");
        }
        answer
    }

    fn resolved(&self) -> Resolution {
        let mut told = Vec::new();
        for address in (self.resolve)(&self.address).map_err(|error| error.to_string())? {
            if told.len() < MOST && !told.contains(&address) {
                told.push(address);
            }
        }
        if told.is_empty() { Err("the name has no address".into()) } else { Ok(told) }
    }

    fn known(&self) -> MutexGuard<'_, Vec<SocketAddr>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// # Errors
/// The error of each address.
async fn happy_eyeballs<T, F>(addresses: &[SocketAddr], attempt: impl Fn(SocketAddr) -> F) -> Result<T, String>
where
    F: Future<Output = io::Result<T>>,
{
    let attempts = addresses.iter().zip(0..).map(|(address, before)| {
        let attempt = attempt(*address);
        async move {
            sleep(SLOW_AFTER * before).await;
            match timeout(ANSWER_WITHIN, attempt).await {
                Ok(ended) => ended.map_err(|error| format!("{address}: {error}")),
                Err(_) => Err(format!("{address}: no answer within {ANSWER_WITHIN:?}")),
            }
        }
    });
    let mut under_way: FuturesUnordered<_> = attempts.collect();
    let mut failed = Vec::new();
    while let Some(ended) = under_way.next().await {
        match ended {
            Ok(reached) => return Ok(reached),
            Err(why) => failed.push(why),
        }
    }
    Err(failed.join("; "))
}

#[cfg(test)]
mod tests;
