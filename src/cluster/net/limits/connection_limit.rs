//! Limits the number of connections, in total and for each client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::listener::ClientKey;

pub struct ConnectionLimit<W = ClientKey> {
    in_all: usize,
    of_each: Box<dyn Fn(&W) -> usize + Send + Sync>,
    taken: Taken<W>,
}

/// The number of permits of each client.
type Taken<W> = Arc<Mutex<BTreeMap<W, usize>>>;

/// One permit, until dropped.
pub struct ConnectionPermit<W: Ord = ClientKey> {
    who: W,
    taken: Taken<W>,
}

impl ConnectionLimit {
    /// A limit without a distinction of clients.
    pub fn in_all(most: usize) -> Self {
        Self::new(most, move |_| most)
    }
}

impl<W: Ord + Clone> ConnectionLimit<W> {
    pub fn new(in_all: usize, of_each: impl Fn(&W) -> usize + Send + Sync + 'static) -> Self {
        Self { in_all, of_each: Box::new(of_each), taken: Arc::default() }
    }

    /// `None` if all permits are taken, or the client has its maximum.
    pub fn acquire(&self, who: W) -> Option<ConnectionPermit<W>> {
        let mut taken = lock(&self.taken);
        let own = taken.get(&who).copied().unwrap_or(0);
        if own >= (self.of_each)(&who) || taken.values().sum::<usize>() >= self.in_all {
            return None;
        }
        taken.insert(who.clone(), own + 1);
        Some(ConnectionPermit { who, taken: self.taken.clone() })
    }
}

impl<W: Ord> Drop for ConnectionPermit<W> {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.who) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.who);
            }
        }
    }
}

fn lock<W>(taken: &Mutex<BTreeMap<W, usize>>) -> MutexGuard<'_, BTreeMap<W, usize>> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_all_and_of_each_and_no_more_until_one_leaves() {
        let places = ConnectionLimit::new(5, |who| if *who == ClientKey::User(0) { 5 } else { 2 });
        let enter = |uid| places.acquire(ClientKey::User(uid));
        let (mut ones, twos) = (vec![enter(1), enter(1)], [enter(2), enter(2)]);
        assert!(ones.iter().chain(&twos).all(Option::is_some));
        assert!(enter(1).is_none());
        let last = enter(0);
        assert!(last.is_some() && enter(0).is_none());
        ones.pop();
        assert!(enter(0).is_some() && enter(2).is_none());
        drop((last, ones, twos));
        assert!(lock(&places.taken).is_empty());
    }
}
