//! A name against a resolver that answers, refuses, hangs, or changes its mind.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, MutexGuard};

use super::*;

/// Behind a function without surroundings, so that each test has its own.
struct Resolver {
    asked: AtomicUsize,
    /// Nothing while it hangs.
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

fn fresh(addresses: &str) -> Found {
    Found { addresses: at(addresses), outdated: None }
}

/// As if the last answer were old.
fn later(name: &Name) {
    let mut known = name.known();
    let (at, answer) = known.answered.take().unwrap();
    known.answered = Some((at.checked_sub(FRESH_FOR).unwrap(), answer));
}

#[tokio::test]
async fn an_address_is_taken_as_it_is() {
    for (written, read) in [("10.0.0.4:7420", "10.0.0.4:7420"), ("[fd00::4]:7420", "[fd00::4]:7420")] {
        let name = Arc::new(Name::resolved_by(written, |_, _| panic!("nobody is asked")));
        assert!(!name.is_a_name());
        assert_eq!(name.addresses().await, Ok(fresh(read)));
    }
}

#[tokio::test]
async fn a_name_is_asked_for_again_at_the_next_dial_and_its_last_addresses_outlive_the_resolver() {
    static RESOLVER: Resolver = Resolver::new();
    let name = Arc::new(Name::resolved_by("db-1.internal:7420", |_, _| RESOLVER.answer()));
    assert!(name.is_a_name());
    RESOLVER.says(Some(Err("no such name")));
    assert_eq!(name.addresses().await, Err("db-1.internal does not resolve: no such name".into()));
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420 10.0.0.6:7420"))));
    assert!(name.addresses().await.is_err(), "a moment later it is not asked again");
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1);
    later(&name);
    assert_eq!(name.addresses().await, Ok(fresh("10.0.0.5:7420 10.0.0.6:7420")));
    RESOLVER.says(Some(Ok(at("10.0.0.9:7420"))));
    later(&name);
    assert_eq!(name.addresses().await, Ok(fresh("10.0.0.9:7420")));
    RESOLVER.says(Some(Err("try again")));
    later(&name);
    let outdated = Some("db-1.internal does not resolve: try again".to_owned());
    assert_eq!(name.addresses().await, Ok(Found { addresses: at("10.0.0.9:7420"), outdated }));
    RESOLVER.says(Some(Ok(Vec::new())));
    later(&name);
    assert!(name.addresses().await.unwrap().outdated.unwrap().ends_with("it has no address"));
}

#[tokio::test]
async fn however_often_it_is_dialled_one_thread_waits_for_a_resolver_that_hangs() {
    static RESOLVER: Resolver = Resolver::new();
    let name = Arc::new(Name::resolved_by("db-1.internal:7420", |_, _| RESOLVER.answer()));
    let waited = std::iter::repeat_with(|| name.addresses()).take(100);
    for answer in futures_util::future::join_all(waited).await {
        assert_eq!(answer, Err("db-1.internal does not resolve: the resolver did not answer within 1s".into()));
    }
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1);
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420"))));
    assert_eq!(name.addresses().await, Ok(fresh("10.0.0.5:7420")), "a late answer counts at the next dial");
    RESOLVER.says(None);
    later(&name);
    let found = name.addresses().await.unwrap();
    assert_eq!((found.addresses, found.outdated.is_some()), (at("10.0.0.5:7420"), true));
    RESOLVER.says(Some(Err("stopped")));
}

#[tokio::test]
async fn where_a_host_was_is_known_though_nobody_dialled_it_before_the_resolver_fell_silent() {
    static RESOLVER: Resolver = Resolver::new();
    let name = Arc::new(Name::resolved_by("db-1.internal:7420", |_, _| RESOLVER.answer()));
    RESOLVER.says(Some(Ok(at("10.0.0.5:7420"))));
    name.keep_up();
    let under_way = name.known().under_way.clone();
    if let Some(mut answer) = under_way {
        answer.wait_for(Option::is_some).await.unwrap();
    }
    name.keep_up();
    assert_eq!(RESOLVER.asked.load(Ordering::SeqCst), 1, "what is young is not asked for again");
    RESOLVER.says(None);
    later(&name);
    let found = name.addresses().await.unwrap();
    assert_eq!((found.addresses, found.outdated.is_some()), (at("10.0.0.5:7420"), true));
    RESOLVER.says(Some(Err("stopped")));
}

#[tokio::test]
async fn of_very_many_addresses_a_few_are_tried() {
    let name = Arc::new(Name::resolved_by("many:1", |_, port| {
        Ok((0..=255).map(|last| SocketAddr::from(([10, 0, 0, last], port))).collect())
    }));
    assert_eq!(name.addresses().await.unwrap().addresses.len(), MOST);
}

#[tokio::test]
async fn a_name_of_this_machine_is_resolved_by_the_system() {
    let found = Arc::new(Name::new("localhost:7420")).addresses().await.unwrap();
    assert!(found.addresses.iter().all(|address| address.ip().is_loopback() && address.port() == 7420), "{found:?}");
}
