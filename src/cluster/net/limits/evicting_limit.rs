//! A limit that always admits. When full, the limit evicts the oldest connection of the client with most connections. A
//! client with a proof of identity and few connections loses one only if no other client has a connection.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use tokio_util::sync::CancellationToken;

use super::listener::ClientKey;

/// The maximum of remembered proofs. Each of 100 replicas has one address.
const PROVED: usize = 128;
/// The number of connections of one client that a proof protects. A replica needs one connection, and `doctor` another.
const PROTECTED: usize = 4;

pub struct EvictingLimit {
    most: usize,
    /// In the order of arrival.
    inside: VecDeque<(ClientKey, CancellationToken)>,
    /// In the order of the first proof.
    proved: VecDeque<ClientKey>,
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
        Self { most, inside: VecDeque::new(), proved: VecDeque::new() }
    }

    /// Admits a connection, and returns the client of the evicted connection.
    pub fn acquire(&mut self, who: ClientKey) -> (EvictingPermit, Option<ClientKey>) {
        self.inside.retain(|(_, stay)| !stay.is_cancelled());
        let mut gone = None;
        if self.inside.len() >= self.most
            && let Some((loser, stay)) = self.victim().and_then(|place| self.inside.remove(place))
        {
            stay.cancel();
            gone = Some(loser);
        }
        let stay = CancellationToken::new();
        self.inside.push_back((who, stay.clone()));
        (EvictingPermit(stay), gone)
    }

    /// Records a client's proof of identity: connections of other clients are evicted first.
    pub fn has_proved(&mut self, who: ClientKey) {
        if self.proved.contains(&who) {
            return;
        }
        if self.proved.len() >= PROVED {
            self.proved.pop_front();
        }
        self.proved.push_back(who);
    }

    fn victim(&self) -> Option<usize> {
        let mut of_each: BTreeMap<ClientKey, (usize, usize)> = BTreeMap::new();
        for (place, (who, _)) in self.inside.iter().enumerate() {
            of_each.entry(*who).or_insert((0, place)).0 += 1;
        }
        // Of two clients with equal counts, the client with the older oldest connection.
        let rank = |(who, (count, oldest)): &(ClientKey, (usize, usize))| {
            (!self.proved.contains(who) || *count > PROTECTED, *count, Reverse(*oldest))
        };
        of_each.into_iter().max_by_key(rank).map(|(_, (_, oldest))| oldest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn full(users: &[u32]) -> EvictingLimit {
        let mut crowd = EvictingLimit::new(users.len());
        crowd.inside = users.iter().map(|uid| (ClientKey::User(*uid), CancellationToken::new())).collect();
        crowd
    }

    fn of(users: &[u32]) -> Option<usize> {
        full(users).victim()
    }

    #[test]
    fn whoever_has_the_most_loses_its_oldest() {
        assert_eq!(of(&[1, 9, 9, 2, 9]), Some(1));
        assert_eq!(of(&[9, 1, 2, 3]), Some(0));
        assert_eq!(of(&[1, 2, 2, 1]), Some(0));
        assert_eq!(of(&[]), None);
    }

    #[test]
    fn who_has_proved_who_it_is_gives_way_to_no_stranger() {
        let mut crowd = full(&[1, 1, 9, 8]);
        crowd.has_proved(ClientKey::User(1));
        assert_eq!(crowd.victim(), Some(2));
        for uid in [8, 9] {
            crowd.has_proved(ClientKey::User(uid));
        }
        assert_eq!(crowd.victim(), Some(0), "among equals, the count decides");
        let mut crowd = full(&[7, 1, 1, 1, 1, 1]);
        crowd.has_proved(ClientKey::User(1));
        assert_eq!(crowd.victim(), Some(1), "a proof protects few connections");
        for uid in 0..1_000 {
            crowd.has_proved(ClientKey::User(uid));
        }
        assert_eq!(crowd.proved.len(), PROVED);
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
