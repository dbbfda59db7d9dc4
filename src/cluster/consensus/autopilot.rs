//! Changes the membership automatically, as the leader: adds configured replicas that answer, promotes learners, and
//! replaces voters that are gone for long. `membership_change` decides the change; this file collects the input and
//! carries out the change. Every replica keeps the addresses of all other replicas, because any replica may lead next.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::future::join_all;
use openraft::{ChangeMembers, Instant as _, RaftMetrics};
use tokio::time::{Instant, sleep, timeout};

use super::failure::RequestError;
use super::join_requests::contest_message;
use super::membership::{CHANGE_WITHIN, catching_up, changed, without};
use super::membership_plan::{
    JoinCandidate, MemberState, MembershipChange, MembershipView, SILENT_AFTER, contested, membership_change,
};
use super::node::Consensus;
use super::raft_status::RaftStatus;
use super::types::{RaftMember, Types, lineage};

const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The interval on a replica without leadership: keeps the connections, and checks for its own removal.
const KEEP_EVERY: Duration = Duration::from_secs(1);
/// The most silence counted between two passes: for the rest of the time this leader was not awake to receive answers.
const AWAKE_AT_MOST: Duration = Duration::from_secs(2);
/// A message sent before a replica's sign-off may be acknowledged after the sign-off.
const SIGNED_OFF_WITHIN: Duration = Duration::from_secs(5);
/// An up-to-date learner may lag by a moment.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// For how long each member has acknowledged nothing, as counted by one leader in one term.
#[derive(Default)]
struct ContactAges {
    term: u64,
    looked: Option<Instant>,
    since: BTreeMap<u64, Duration>,
}

impl ContactAges {
    fn record_contacts(&mut self, metrics: &RaftMetrics<Types>) {
        if metrics.current_term != self.term {
            *self = Self { term: metrics.current_term, ..Self::default() };
        }
        let now = Instant::now();
        let passed = self.looked.replace(now).map_or(Duration::ZERO, |looked| now - looked);
        let acked = |node: &u64| metrics.heartbeat.as_ref().and_then(|all| all.get(node).copied().flatten());
        let silence = |node: &u64| {
            let heard = *node == metrics.id || acked(node).is_some_and(|acked| acked.elapsed() <= passed);
            let before = self.since.get(node).copied().unwrap_or_default();
            silence_after(before, passed, heard)
        };
        let nodes = metrics.membership_config.nodes();
        self.since = nodes.map(|(node, _)| (*node, silence(node))).collect();
    }
}

fn silence_after(before: Duration, passed: Duration, heard: bool) -> Duration {
    if heard { Duration::ZERO } else { before.saturating_add(passed.min(AWAKE_AT_MOST)) }
}

/// Logs each contested name once, as long as the nodes of the name stay unchanged.
fn log_contested_names(known: &mut BTreeMap<String, BTreeSet<u64>>, contests: BTreeMap<String, BTreeSet<u64>>) {
    for (name, nodes) in contests.iter().filter(|(name, nodes)| known.get(*name) != Some(*nodes)) {
        tracing::warn!(replica = name, "{}", contest_message(name, nodes));
    }
    *known = contests;
}

impl Consensus {
    /// Runs until this replica stops; changes the membership only as the leader.
    pub(crate) async fn run_autopilot(self) {
        let mut silences = ContactAges::default();
        let mut said = None;
        let mut contests = BTreeMap::new();
        loop {
            self.until_next_look().await;
            for (_, member) in self.membership().nodes() {
                // A wrong address is reported by the caller of that address.
                let _ = self.peers.channel_or_dial(&member.replica, &member.address);
            }
            self.peers.keep_connected();
            self.ask_whether_removed().await;
            if !self.status.borrow().leads() {
                silences = ContactAges::default();
                continue;
            }
            self.with_metrics(|metrics| silences.record_contacts(metrics));
            let Ok(_one_at_a_time) = self.changing.try_lock() else { continue };
            let view = self.view(&silences).await;
            log_contested_names(&mut contests, contested(&view));
            let Some(due) = membership_change(&view) else { continue };
            match self.carry_out(&due).await {
                Ok(()) => tracing::info!(?due, "membership changed"),
                // A failed change is tried again at once, and logged once.
                Err(error) if said.as_ref() != Some(&error) => {
                    tracing::warn!(?due, %error, "membership not changed");
                    said = Some(error);
                }
                Err(_) => {}
            }
        }
    }

    async fn until_next_look(&self) {
        let mut status = self.status.subscribe();
        if timeout(KEEP_EVERY, status.wait_for(RaftStatus::leads)).await.is_ok() {
            sleep(LOOK_EVERY).await;
        }
    }

    async fn view(&self, silences: &ContactAges) -> MembershipView {
        let membership = self.membership();
        let (committed, matched) = self.with_metrics(|metrics| {
            (metrics.cluster_committed.map_or(0, |id| id.index()), metrics.replication.clone().unwrap_or_default())
        });
        let signed_off = self.askers.signed_off(|node| membership.get_node(&node).is_some());
        // A member heard since its sign-off goes on after all.
        let has_stopped = |node: &u64| {
            let signed_off = signed_off.get(node).map(std::time::Instant::elapsed);
            let silent_for = silences.since.get(node).copied().unwrap_or_default();
            signed_off.is_some_and(|ago| ago < silent_for + SIGNED_OFF_WITHIN)
        };
        let known = |(node, member): (&u64, &RaftMember)| MemberState {
            node: *node,
            member: member.clone(),
            voter: membership.voter_ids().any(|voter| voter == *node),
            silent_for: silences.since.get(node).copied().unwrap_or_default(),
            signed_off: has_stopped(node),
            lag: matched.get(node).copied().flatten().map(|matched| committed.saturating_sub(matched.index())),
            excluded: self.excludes(&member.replica),
        };
        let mut members: Vec<MemberState> = membership.nodes().map(known).collect();
        let place = |name: &str| self.options.replicas.iter().position(|(configured, _)| configured == name);
        members.sort_by_cached_key(|known| {
            (place(&known.member.replica).unwrap_or(usize::MAX), known.member.replica.clone())
        });
        MembershipView {
            callers: self.callers(&members).await,
            members,
            askers: self.askers.nodes(Instant::now().into_std()),
            half_changed: membership.get_joint_config().len() > 1,
            max_voters: self.options.max_voters,
            replace_after: self.options.replace_after,
            rejoin_after: self.options.rejoin_after,
        }
    }

    /// Asks the configured replicas that are no members, or differ from the log.
    async fn callers(&self, members: &[MemberState]) -> Vec<JoinCandidate> {
        let is_settled = |name: &str, address: &str| {
            let mut known = members.iter().filter(|known| known.member.replica == name);
            known.any(|known| known.member.address == address && known.silent_for < SILENT_AFTER)
        };
        let lineage = lineage(&self.membership());
        let is_out = |name: &str| self.excludes(name) && members.iter().all(|known| known.member.replica != name);
        let asked = self.options.replicas.iter().filter(|(name, address)| !is_settled(name, address) && !is_out(name));
        let calls = asked.filter_map(|(name, address)| Some((name, address, self.peers.channel(name)?))).map(
            async |(name, address, channel)| {
                let member = RaftMember { replica: name.clone(), address: address.clone(), lineage };
                if *name == self.identity.replica {
                    return Some(JoinCandidate { node: self.identity.node, member, new: false });
                }
                let answer = self.send_hello(name, channel).await.ok()?;
                Some(JoinCandidate { node: answer.greeting.node, member, new: answer.membership.is_none() })
            },
        );
        let is_as_known = |caller: &JoinCandidate| {
            members.iter().any(|known| known.node == caller.node && known.member == caller.member)
        };
        join_all(calls).await.into_iter().flatten().filter(|caller| !is_as_known(caller)).collect()
    }

    async fn carry_out(&self, due: &MembershipChange) -> Result<(), RequestError> {
        let membership = self.membership();
        self.has_quorum(&membership).await?;
        // A former voter stays a learner, and may vote again when there is room. A lost disk is removed.
        let stays = !matches!(due, MembershipChange::Forget { .. } | MembershipChange::Rejoin { .. });
        let change = match due {
            MembershipChange::Finish => ChangeMembers::AddVoterIds([].into()),
            MembershipChange::Forget { nodes } => without(&membership, nodes),
            MembershipChange::Move(members) => ChangeMembers::SetNodes(members.clone()),
            MembershipChange::Add { learners, instead_of } => ChangeMembers::Batch(vec![
                ChangeMembers::RemoveNodes(instead_of.iter().copied().collect()),
                ChangeMembers::AddNodes(learners.clone()),
            ]),
            MembershipChange::Promote { learner } => {
                self.wait_until_ready(*learner).await?;
                ChangeMembers::AddVoterIds([*learner].into())
            }
            MembershipChange::Replace { gone, learner } | MembershipChange::Rejoin { lost: gone, learner } => {
                self.wait_until_ready(*learner).await?;
                let stay = membership.voter_ids().filter(|voter| voter != gone).chain([*learner]).collect();
                ChangeMembers::ReplaceAllVoters(stay)
            }
        };
        changed(CHANGE_WITHIN, self.raft.change_membership(change, stays)).await
    }

    async fn wait_until_ready(&self, learner: u64) -> Result<(), RequestError> {
        let begun = Instant::now();
        if self.metrics_show(begun + READY_WITHIN, |metrics| self.ready(metrics, learner, begun)).await?.is_some() {
            return Ok(());
        }
        let name = self.membership().get_node(&learner).map(|member| member.replica.clone());
        Err(catching_up(&name.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEN_MINUTES: Duration = Duration::from_mins(10);

    #[test]
    fn silence_adds_up_until_something_is_heard() {
        let once = silence_after(Duration::ZERO, LOOK_EVERY, false);
        assert_eq!(silence_after(once, LOOK_EVERY, false), LOOK_EVERY * 2);
        assert_eq!(silence_after(TEN_MINUTES, LOOK_EVERY, true), Duration::ZERO);
    }

    #[test]
    fn what_a_leader_slept_through_is_nobodys_silence() {
        assert_eq!(silence_after(Duration::ZERO, TEN_MINUTES, false), AWAKE_AT_MOST);
    }
}
