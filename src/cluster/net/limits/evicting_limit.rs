//! A limit that always admits. When full, the limit evicts the oldest connection of the client with most connections.

use std::collections::{BTreeMap, VecDeque};

use tokio_util::sync::CancellationToken;

use super::listener::ClientKey;

/// In the order of arrival.
pub struct EvictingLimit {
    most: usize,
    inside: VecDeque<(ClientKey, CancellationToken)>,
}

/// Held by an admitted connection, which leaves by dropping the permit.
pub struct EvictingPermit(CancellationToken);

impl EvictingPermit {
    /// Ends on eviction.
    pub fn evicted(&self) -> impl Future<Output = ()> + Send + 'static {
        self.0.clone().cancelled_owned()
    }
}

impl Drop for EvictingPermit {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

impl EvictingLimit {
    pub fn new(most: usize) -> Self {
        Self { most, inside: VecDeque::new() }
    }

    /// Admits a connection, and returns the client of the evicted connection.
    pub fn acquire(&mut self, who: ClientKey) -> (EvictingPermit, Option<ClientKey>) {
        self.inside.retain(|(_, stay)| !stay.is_cancelled());
        let mut gone = None;
        if self.inside.len() >= self.most
            && let Some((loser, stay)) = victim(self.who()).and_then(|place| self.inside.remove(place))
        {
            stay.cancel();
            gone = Some(loser);
        }
        let stay = CancellationToken::new();
        self.inside.push_back((who, stay.clone()));
        (EvictingPermit(stay), gone)
    }

    fn who(&self) -> impl Iterator<Item = ClientKey> {
        self.inside.iter().map(|(who, _)| *who)
    }
}

/// The oldest connection of the client with most connections.
fn victim(inside: impl Iterator<Item = ClientKey>) -> Option<usize> {
    let mut of_each: BTreeMap<ClientKey, (usize, usize)> = BTreeMap::new();
    for (place, who) in inside.enumerate() {
        of_each.entry(who).or_insert((0, place)).0 += 1;
    }
    // Of two clients with equal counts, the client with the older oldest connection.
    let most = of_each.into_values().max_by_key(|(count, oldest)| (*count, std::cmp::Reverse(*oldest)));
    most.map(|(_, oldest)| oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(users: &[u32]) -> Option<usize> {
        victim(users.iter().map(|uid| ClientKey::User(*uid)))
    }

    #[test]
    fn whoever_has_the_most_loses_its_oldest() {
        assert_eq!(of(&[1, 9, 9, 2, 9]), Some(1));
        assert_eq!(of(&[9, 1, 2, 3]), Some(0));
        assert_eq!(of(&[1, 2, 2, 1]), Some(0));
        assert_eq!(of(&[]), None);
    }

    #[tokio::test]
    async fn a_newcomer_always_gets_in_and_one_that_has_left_costs_nobody_anything() {
        let mut crowd = EvictingLimit::new(2);
        let (first, nobody) = crowd.acquire(ClientKey::User(1));
        let (second, none) = crowd.acquire(ClientKey::User(1));
        assert_eq!((nobody, none), (None, None));
        let (third, gone) = crowd.acquire(ClientKey::User(2));
        assert_eq!(gone, Some(ClientKey::User(1)));
        first.evicted().await;
        drop(second);
        let (_fourth, gone) = crowd.acquire(ClientKey::User(3));
        assert_eq!(gone, None);
        assert!(!third.0.is_cancelled());
    }
}
