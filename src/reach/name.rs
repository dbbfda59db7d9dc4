//! The addresses of a host, resolved anew at each dial: by one thread at the most, however long the resolver hangs, and
//! never waited for long. While the resolver says nothing, or that it cannot say, the last addresses stay good: a cluster
//! does not fall apart because a DNS server does.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::time::timeout;

/// The first answer is waited for this long.
const FIRST_WITHIN: Duration = Duration::from_secs(1);
/// A later one this long: there are addresses to go on with, and the answer counts at the next dial.
const NEXT_WITHIN: Duration = Duration::from_millis(100);
/// An answer this young is used again, so that whoever dials a dead replica all the time is no burden to the resolver.
const FRESH_FOR: Duration = Duration::from_secs(1);
/// Addresses that nobody dials are asked for again after this time.
const KEPT_UP_EVERY: Duration = Duration::from_mins(1);
/// Further addresses of one host are left out.
const MOST: usize = 8;
/// Enough for what a system's resolver does.
const STACK_BYTES: usize = 512 << 10;

type Resolve = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;
type Answer = Result<Vec<SocketAddr>, String>;

/// A host and a port, and what is known of where that is.
pub(super) struct Name {
    host: String,
    port: u16,
    resolve: Resolve,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The last ones that were told.
    addresses: Vec<SocketAddr>,
    answered: Option<(Instant, Answer)>,
    under_way: Option<watch::Receiver<Option<Answer>>>,
}

/// Where to try.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) addresses: Vec<SocketAddr>,
    /// Why they are those of before.
    pub(super) outdated: Option<String>,
}

enum Asked {
    Answered(Answer),
    UnderWay(watch::Receiver<Option<Answer>>),
}

impl Name {
    /// `host:port`; an address needs no resolver.
    pub(super) fn new(address: &str) -> Self {
        Self::resolved_by(address, resolve)
    }

    fn resolved_by(address: &str, resolve: Resolve) -> Self {
        let (host, port) = address.rsplit_once(':').unwrap_or((address, ""));
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Self { host, port: port.parse().unwrap_or_default(), resolve, known: Mutex::default() }
    }

    /// What another machine may be tomorrow.
    pub(super) fn is_a_name(&self) -> bool {
        self.host.parse::<IpAddr>().is_err()
    }

    /// Where it is, as far as the resolver says so in time.
    ///
    /// # Errors
    /// Why nothing is known.
    pub(super) async fn addresses(self: &Arc<Self>) -> Result<Found, String> {
        if let Ok(ip) = self.host.parse::<IpAddr>() {
            return Ok(Found { addresses: vec![SocketAddr::new(ip, self.port)], outdated: None });
        }
        let answer = match self.ask() {
            Asked::Answered(answer) => answer,
            Asked::UnderWay(answer) => self.wait_for(answer).await,
        };
        let why = match answer {
            Ok(addresses) => return Ok(Found { addresses, outdated: None }),
            Err(why) => format!("{} does not resolve: {why}", self.host),
        };
        match self.known().addresses.clone() {
            none if none.is_empty() => Err(why),
            addresses => Ok(Found { addresses, outdated: Some(why) }),
        }
    }

    /// Has the resolver asked when the last answer is old, and waits for nothing: who dials when it is silent goes by that.
    pub(super) fn keep_up(self: &Arc<Self>) {
        let is_recent = self.known().answered.as_ref().is_some_and(|(at, _)| at.elapsed() < KEPT_UP_EVERY);
        if self.is_a_name() && !is_recent {
            self.ask();
        }
    }

    async fn wait_for(&self, mut answer: watch::Receiver<Option<Answer>>) -> Answer {
        let within = if self.known().addresses.is_empty() { FIRST_WITHIN } else { NEXT_WITHIN };
        match timeout(within, answer.wait_for(Option::is_some)).await {
            Ok(Ok(answer)) => answer.clone().unwrap_or_else(|| Err("no answer".into())),
            Ok(Err(_)) => Err("the resolver broke off".into()),
            Err(_) => Err(format!("the resolver did not answer within {within:?}")),
        }
    }

    /// On a thread of its own, for a resolver that hangs must not take those that write to the disk.
    fn ask(self: &Arc<Self>) -> Asked {
        let mut known = self.known();
        if let Some(under_way) = &known.under_way {
            return Asked::UnderWay(under_way.clone());
        }
        if let Some((_, answer)) = known.answered.as_ref().filter(|(at, _)| at.elapsed() < FRESH_FOR) {
            return Asked::Answered(answer.clone());
        }
        let (tell, answer) = watch::channel(None);
        let name = self.clone();
        let asking = std::thread::Builder::new().name("resolver".into()).stack_size(STACK_BYTES);
        let begun = asking.spawn(move || {
            let answer = name.answer();
            name.keep(answer.clone());
            tell.send_replace(Some(answer));
        });
        if let Err(error) = begun {
            return Asked::Answered(Err(error.to_string()));
        }
        known.under_way = Some(answer.clone());
        Asked::UnderWay(answer)
    }

    fn answer(&self) -> Answer {
        let mut told = (self.resolve)(&self.host, self.port).map_err(|error| because(&error))?;
        told.truncate(MOST);
        if told.is_empty() { Err("it has no address".into()) } else { Ok(told) }
    }

    fn keep(&self, answer: Answer) {
        let mut known = self.known();
        if let Ok(addresses) = &answer {
            known.addresses.clone_from(addresses);
        }
        known.answered = Some((Instant::now(), answer));
        known.under_way = None;
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the system is told to: `/etc/hosts`, DNS and so on, each address once and in the order in which it prefers them.
fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !addresses.contains(&address) {
            addresses.push(address);
        }
    }
    Ok(addresses)
}

/// Without what is said already.
fn because(error: &io::Error) -> String {
    let said = error.to_string();
    said.strip_prefix("failed to lookup address information: ").unwrap_or(&said).to_owned()
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
