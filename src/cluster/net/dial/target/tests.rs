//! Dial targets with a resolver that answers, refuses, hangs, or changes its answer, and addresses that do.

use std::sync::Condvar;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

/// Used by a function pointer without captures, so each test has its own.
struct Resolver {
    asked: AtomicUsize,
    /// `None` while the resolver hangs.
    says: Mutex<Option<Result<Vec<SocketAddr>, &'static str>>>,
    changed: Condvar,
}

impl Resolver {
    const fn new() -> Self {
        Self { asked: AtomicUsize::new(0), says: Mutex::new(None), changed: Condvar::new() }
    }

    fn says(&self, what: Option<Result<Vec<SocketAddr>, &'static str>>) {
        *self.lock() = what;
        self.changed.notify_all();
    }

    fn answer(&self) -> io::Result<Vec<SocketAddr>> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut says = self.lock();
        loop {
            match &*says {
                Some(answer) => return answer.clone().map_err(io::Error::other),
                None => says = self.changed.wait(says).unwrap(),
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<Result<Vec<SocketAddr>, &'static str>>> {
        self.says.lock().unwrap()
    }
}

fn at(text: &str) -> Vec<SocketAddr> {
    text.split_whitespace().map(|address| address.parse().unwrap()).collect()
}

fn fresh(addresses: &str) -> (Vec<SocketAddr>, Option<String>) {
    (at(addresses), None)
}

/// Makes the last answer old.
fn later(way: &DialTarget) {
    let mut answered = way.answered.try_lock().unwrap();
    let (at, answer) = answered.take().unwrap();
    *answered = Some((at.checked_sub(FRESH_FOR).unwrap(), answer));
}

#[tokio::test]
async fn an_address_is_taken_as_it_is() {
    for (written, read) in [("10.0.0.4:7420", "10.0.0.4:7420"), ("[fd00::4]:7420", "[fd00::4]:7420")] {
        let way = DialTarget::resolved_by(written, |_| panic!("nobody is asked"));
        assert!(!way.may_change());
        assert_eq!(way.addresses().await, Ok(fresh(read)));
    }
}

#[tokio::test]
async fn a_name_is_asked_for_again_at_the_next_dial_and_its_last_addresses_outlive_the_resolver() {
    static RESOLVER: Resolver = Resolver::new();
    let way = DialTarget::resolved_by("db-1.internal:7420", |_| RESOLVER.answer());
    assert!(way.may_change());
    RESOLVER.says(Some(Err("no such name")));
    assert_eq!(way.addresses().await, Err("db-1.internal does not resolve: no such name".into()));
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420 10.0.0.6:7420"))));
    assert!(way.addresses().await.is_err(), "a moment later it is not asked again");
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1);
    later(&way);
    assert_eq!(way.addresses().await, Ok(fresh("10.0.0.5:7420 10.0.0.6:7420")));
    RESOLVER.says(Some(Ok(at("10.0.0.9:7420"))));
    later(&way);
    assert_eq!(way.addresses().await, Ok(fresh("10.0.0.9:7420")));
    RESOLVER.says(Some(Err("try again")));
    later(&way);
    let outdated = Some("db-1.internal does not resolve: try again".to_owned());
    assert_eq!(way.addresses().await, Ok((at("10.0.0.9:7420"), outdated)));
    RESOLVER.says(Some(Ok(Vec::new())));
    later(&way);
    assert!(way.addresses().await.unwrap().1.unwrap().ends_with("the name has no address"));
}

#[tokio::test]
async fn however_often_it_is_dialled_one_thread_waits_for_a_resolver_that_hangs() {
    static RESOLVER: Resolver = Resolver::new();
    let way = DialTarget::resolved_by("db-1.internal:7420", |_| RESOLVER.answer());
    let waited = std::iter::repeat_with(|| way.addresses()).take(100);
    for answer in futures_util::future::join_all(waited).await {
        assert_eq!(answer, Err("db-1.internal does not resolve: the resolver did not answer within 1s".into()));
    }
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1);
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420"))));
    assert_eq!(way.addresses().await, Ok(fresh("10.0.0.5:7420")), "a late answer counts at the next dial");
    RESOLVER.says(None);
    later(&way);
    let found = way.addresses().await.unwrap();
    assert_eq!((found.0, found.1.is_some()), (at("10.0.0.5:7420"), true));
    RESOLVER.says(Some(Err("stopped")));
}

#[tokio::test]
async fn where_a_host_was_is_known_though_nobody_dialled_it_before_the_resolver_fell_silent() {
    static RESOLVER: Resolver = Resolver::new();
    let way = DialTarget::resolved_by("db-1.internal:7420", |_| RESOLVER.answer());
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420"))));
    way.keep_resolved();
    drop(way.answered.lock().await);
    way.keep_resolved();
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1, "what is young is not asked for again");
    RESOLVER.says(None);
    later(&way);
    let found = way.addresses().await.unwrap();
    assert_eq!((found.0, found.1.is_some()), (at("10.0.0.5:7420"), true));
    RESOLVER.says(Some(Err("stopped")));
}

#[tokio::test]
async fn of_very_many_addresses_a_few_are_tried() {
    let way = DialTarget::resolved_by("many:1", |_| {
        Ok((0..=255).map(|last| SocketAddr::from(([10, 0, 0, last], 1))).collect())
    });
    assert_eq!(way.addresses().await.unwrap().0.len(), MOST);
}

#[tokio::test]
async fn an_address_that_is_told_twice_is_tried_once() {
    let way = DialTarget::resolved_by("twice:1", |_| Ok(at("10.0.0.5:1 10.0.0.6:1 10.0.0.5:1")));
    assert_eq!(way.addresses().await, Ok(fresh("10.0.0.5:1 10.0.0.6:1")));
}

#[tokio::test]
async fn a_name_of_this_machine_is_resolved_by_the_system() {
    let found = DialTarget::to("localhost:7420").addresses().await.unwrap();
    assert!(found.0.iter().all(|address| address.ip().is_loopback() && address.port() == 7420), "{found:?}");
}

#[tokio::test]
async fn what_stood_in_the_way_is_told_until_it_could_be_gone() {
    let way = DialTarget::to("127.0.0.1:1");
    assert!(!way.may_change() && DialTarget::to("localhost:1").may_change());
    assert_eq!(way.last_error(), None);
    assert!(way.connect(async |_| Err::<(), _>(io::Error::other("nobody there"))).await.is_err());
    assert_eq!(way.last_error().as_deref(), Some("127.0.0.1:1: nobody there"));
    way.connect(async |_| Ok(())).await.unwrap();
    assert_eq!(way.last_error(), None);
}

/// The last byte selects the result of an attempt; returns the tried addresses.
async fn tried(lasts: &[u8]) -> (Result<u8, String>, Vec<u8>) {
    let tried = Mutex::new(Vec::new());
    let addresses: Vec<_> = lasts.iter().map(|last| SocketAddr::from(([10, 0, 0, *last], 7420))).collect();
    let reached = happy_eyeballs(&addresses, async |address| {
        let last = address.to_string().split(['.', ':']).nth(3).unwrap().parse::<u8>().unwrap();
        tried.lock().unwrap().push(last);
        match last {
            0..10 => Err(io::Error::new(io::ErrorKind::ConnectionRefused, "refused")),
            10..20 => std::future::pending().await,
            20..30 => {
                sleep(SLOW_AFTER * 5 / 2).await;
                Ok(last)
            }
            _ => Ok(last),
        }
    });
    let reached = reached.await;
    (reached, tried.into_inner().unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_address_is_tried_until_one_answers() {
    for (lasts, reached, expected) in [
        (&[30, 31][..], 30, &[30][..]),
        (&[1, 31], 31, &[1, 31]),
        (&[11, 31], 31, &[11, 31]),
        (&[11, 1, 2, 12, 31], 31, &[11, 1, 2, 12, 31]),
        (&[21, 11, 1], 21, &[21, 11, 1]),
        (&[21], 21, &[21]),
    ] {
        let (first, tried) = tried(lasts).await;
        assert_eq!((first, tried.as_slice()), (Ok(reached), expected), "{lasts:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn when_none_answers_it_is_told_of_each() {
    let why = async |lasts: &[u8]| tried(lasts).await.0.unwrap_err();
    assert_eq!(why(&[1]).await, "10.0.0.1:7420: refused");
    assert_eq!(why(&[11, 1]).await, "10.0.0.1:7420: refused; 10.0.0.11:7420: no answer within 500ms");
}
