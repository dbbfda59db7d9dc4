//! Asks the other replicas whether a node unknown to this replica's log is a member. This replica may have been
//! disconnected while the cluster changed.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use futures_util::future::join_all;

use super::node::Consensus;
use super::vouches::Word;

/// The shortest time between two questions to the other replicas, however many calls of unknown nodes arrive.
const ASKED_EVERY: Duration = Duration::from_secs(1);

impl Consensus {
    /// The replica of this node, according to entitled replicas. The question goes on when the caller gives up.
    pub(super) async fn vouched_for(&self, node: u64) -> Option<String> {
        let consensus = self.clone();
        let asked = tokio::spawn(async move { consensus.words().await });
        let words = asked.await.ok()?;
        let membership = self.membership();
        let members = membership.nodes().map(|(_, member)| member.replica.as_str()).collect();
        let others = self.options.replicas.iter().map(|(name, _)| name.as_str());
        let others = others.filter(|name| *name != self.identity.replica).collect();
        vouched_for(node, &members, &others, &words)
    }

    async fn words(&self) -> Vec<Word> {
        let mut last = self.words.0.lock().await;
        if let Some((_, words)) = last.as_ref().filter(|(at, _)| at.elapsed() < ASKED_EVERY) {
            return words.clone();
        }
        let asked = self.peers_to_ask().into_iter().map(async |(name, channel)| {
            let answer = self.send_hello(&name, channel).await.ok()?;
            Some((name, answer.membership?))
        });
        let words: Vec<Word> = join_all(asked).await.into_iter().flatten().collect();
        *last = Some((Instant::now(), words.clone()));
        words
    }
}

/// The answer of a member in the own log counts. If no member answers, more than half of the other configured replicas
/// have to agree. No replica vouches for itself.
fn vouched_for(node: u64, members: &BTreeSet<&str>, others: &BTreeSet<&str>, words: &[Word]) -> Option<String> {
    let named = |(by, membership): &Word| {
        let name = membership.get_node(&node)?.replica.clone();
        (name != *by).then_some(name)
    };
    let of_members: Vec<&Word> = words.iter().filter(|(by, _)| members.contains(by.as_str())).collect();
    if !of_members.is_empty() {
        return of_members.into_iter().find_map(named);
    }
    let of_others = words.iter().filter(|(by, _)| others.contains(by.as_str()));
    let told: Vec<String> = of_others.filter_map(named).collect();
    let first = told.first()?.clone();
    let same = told.iter().filter(|name| **name == first).count();
    // The replica in question is among the other replicas, and does not count.
    let voices = others.iter().filter(|name| **name != first).count();
    (same * 2 > voices).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::types::Membership;
    use super::super::types::RaftMember;
    use super::*;

    fn word(by: &str, nodes: &[(u64, &str)]) -> Word {
        let member = |name: &str| RaftMember { replica: name.into(), ..RaftMember::default() };
        let nodes: BTreeMap<u64, RaftMember> = nodes.iter().map(|(node, name)| (*node, member(name))).collect();
        let voters = nodes.keys().copied().collect();
        (by.into(), Membership::new(vec![voters], nodes).unwrap())
    }

    /// Asked by db-0, which knows db-1 and db-2 from its log.
    fn asked(node: u64, others: &[&str], words: &[Word]) -> Option<String> {
        let members = ["db-0", "db-1", "db-2"].into();
        vouched_for(node, &members, &others.iter().copied().collect(), words)
    }

    #[test]
    fn a_members_word_counts_and_nobody_vouches_for_itself() {
        let grown = [(1, "db-1"), (3, "db-3")];
        let configured = ["db-1", "db-2", "db-3"];
        assert_eq!(asked(3, &configured, &[word("db-1", &grown)]), Some("db-3".into()));
        assert_eq!(asked(3, &configured, &[word("db-3", &grown)]), None);
        assert_eq!(asked(1, &configured, &[word("db-1", &grown)]), None);
        // The answer of a removed replica does not count beside the answer of a member.
        let own = [(1, "db-1"), (2, "db-2")];
        assert_eq!(asked(3, &configured, &[word("db-4", &grown), word("db-1", &own)]), None);
    }

    #[test]
    fn where_no_member_is_left_most_of_the_configured_have_to_say_the_same() {
        let now = [(3, "db-3"), (4, "db-4"), (5, "db-5")];
        let configured = ["db-3", "db-4", "db-5"];
        let word_of = |by| word(by, &now);
        assert_eq!(asked(3, &configured, &[word_of("db-4"), word_of("db-5")]), Some("db-3".into()));
        assert_eq!(asked(3, &configured, &[word_of("db-4")]), None);
        assert_eq!(asked(3, &configured, &[word_of("db-4"), word_of("db-9")]), None);
        assert_eq!(asked(3, &configured, &[]), None);
    }
}
