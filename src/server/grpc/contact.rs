//! Status reports between replicas (`Contact.Beat`): this replica sends its own to the leader, and as the leader
//! receives the reports of other replicas. A replica without a leader asks the other voters (`Contact.Ask`).

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tonic::{Extensions, Request, Response, Status};

use super::imds_report::{health, wire_health};
use super::leader_query::ask_around;
use super::leader_time::{own_reading, reading_of, set_the_time, tell_of_a_step, wire_platform};
use crate::replica::clock;
use crate::replica::clock_skew::{Ahead, Sample, Samples};
use crate::replica::cluster::ClusterHandle;
use crate::replica::input_source::InputSource;
use crate::replica::peer_tracker::{BEAT_EVERY, ImdsReport, LeaderView, PeerTracker, ViewedPeer};
use crate::replica::poller::ImdsPoller;
use crate::replica::watchdog::Watchdog;
use allclear_core::cluster_time::Trust;
use allclear_core::model::id::VmName;
use allclear_core::model::time::Timestamp;
use allclear_wire::pb::allclear::cluster::v1 as wire;
use allclear_wire::pb::allclear::cluster::v1::contact_client::ContactClient;
use allclear_wire::pb::allclear::cluster::v1::contact_server::{self, ContactServer};

/// A status report and a query name a replica and its cluster.
const MAX_MESSAGE_BYTES: usize = 16 << 10;
/// A leader without a reply by then has not received the report.
const REPLY_WITHIN: Duration = Duration::from_secs(1);
/// A newly elected leader accepts reports a moment later, and hooks wait for the leader's time. Each further pause is
/// twice as long.
const BEAT_AGAIN_AFTER: Duration = Duration::from_millis(5);

struct ContactService {
    cluster: Arc<ClusterHandle>,
    inputs: Arc<InputSource>,
    observer: Arc<ImdsPoller>,
}

/// Serves the status reports and queries of the other replicas.
pub fn contact_service(
    inputs: Arc<InputSource>,
    observer: Arc<ImdsPoller>,
) -> ContactServer<impl contact_server::Contact> {
    let cluster = inputs.cluster.clone();
    ContactServer::new(ContactService { cluster, inputs, observer }).max_decoding_message_size(MAX_MESSAGE_BYTES)
}

impl ContactService {
    /// The authenticated sender; rejects other clusters, and a replica under another replica's name.
    fn admit(&self, extensions: &Extensions, cluster: &str, replica: &str) -> Result<VmName, Status> {
        let name = VmName::new(replica);
        if cluster != self.cluster.node.cluster || !self.cluster.may_take_part(&name) {
            let is_removed = cluster == self.cluster.node.cluster && self.cluster.state().is_excluded(&name);
            if is_removed && self.cluster.consensus.authenticate(extensions, replica).is_ok() {
                self.cluster.consensus.note_removed(replica);
            }
            let message = format!("{replica} of cluster {cluster:?} is not a member of this cluster");
            return Err(Status::permission_denied(message));
        }
        self.cluster.consensus.authenticate(extensions, replica)?;
        Ok(name)
    }
}

#[tonic::async_trait]
impl contact_server::Contact for ContactService {
    async fn beat(&self, request: Request<wire::BeatRequest>) -> Result<Response<wire::BeatResponse>, Status> {
        let (_, extensions, beat) = request.into_parts();
        let replica = self.admit(&extensions, &beat.cluster, &beat.replica)?;
        if !self.cluster.leads() {
            return Err(Status::failed_precondition(format!("{} is not the leader", self.cluster.node.name)));
        }
        self.cluster.time.lead();
        self.inputs.peers.record_report(&replica, health(beat.channel.as_ref()), beat.operator_seq);
        if beat.known_time_ms.is_some_and(|time| self.cluster.time.adopt(Timestamp(time))) {
            tell_of_a_step(&self.inputs);
        }
        let reading = reading_of(&beat, beat.time_base == self.cluster.time.base());
        self.inputs.peers.differences.record_reading(&replica, reading, self.cluster.time.trust());
        if self.cluster.time.trust() == Trust::Unknown {
            set_the_time(&self.inputs, &self.observer);
        }
        self.inputs.peers.policies.record_fingerprint(&replica, beat.policy);
        self.inputs.peers.knows(&replica, beat.version);
        let contacts = leader_view_to_wire(&self.inputs.peers, &self.cluster.members_and_configured());
        let (time_ms, time_base) = (Some(self.cluster.time.now().0), self.cluster.time.base());
        let time_trust = self.cluster.time.trust().as_str().into();
        Ok(Response::new(wire::BeatResponse { contacts, time_ms, time_base, time_trust }))
    }

    async fn ask(&self, request: Request<wire::AskRequest>) -> Result<Response<wire::AskResponse>, Status> {
        let (_, extensions, asked) = request.into_parts();
        self.admit(&extensions, &asked.cluster, &asked.replica)?;
        let raft_status = self.cluster.consensus.status_now();
        let leader = if raft_status.has_leader() { raft_status.leader } else { None };
        let channel = Some(wire_health(self.observer.health()));
        Ok(Response::new(wire::AskResponse { leader, channel, wall_ms: Some(self.cluster.time.wall().0) }))
    }
}

/// Reports this replica's status to the leader, and asks the other voters while there is no leader, until stopped.
pub async fn report_status(
    inputs: Arc<InputSource>,
    observer: Arc<ImdsPoller>,
    watchdog: Arc<Watchdog>,
    stop: CancellationToken,
) {
    tokio::join!(report_to_leader(&inputs, &observer, &watchdog, &stop), ask_around(&inputs, &stop));
}

async fn report_to_leader(inputs: &InputSource, observer: &ImdsPoller, watchdog: &Watchdog, stop: &CancellationToken) {
    let cluster = &inputs.cluster;
    let mut raft_status = cluster.consensus.status();
    let mut state = cluster.committed.clone();
    let mut told = LeaderTimeSamples::default();
    let mut before = None;
    let mut again = BEAT_AGAIN_AFTER;
    loop {
        let leader = raft_status.borrow_and_update().leader.clone();
        let own = observer.health();
        let operator_seq = cluster.state().operator_seq;
        inputs.peers.record_report(&cluster.node.name, own, operator_seq);
        if leader.is_some() && leader != before {
            inputs.peers.differences.forget();
            before.clone_from(&leader);
            told.is_followed = false;
            again = BEAT_AGAIN_AFTER;
        }
        let is_taken = match leader.as_deref() {
            Some(leader) if VmName::new(leader) == cluster.node.name => {
                set_the_time(inputs, observer);
                inputs.peers.policies.record_fingerprint(&cluster.node.name, cluster.node.fingerprint.clone());
                true
            }
            Some(leader) => tokio::select! {
                is_taken = send_report(inputs, observer, leader, (own, operator_seq), &mut told) => is_taken,
                () = stop.cancelled() => return,
            },
            None => true,
        };
        let turn = watchdog.until_turn(BEAT_EVERY);
        // No entry gets a timestamp before the leader knows the time.
        let is_done = is_taken && (leader.is_none() || cluster.time.trust() != Trust::Unknown);
        let wait = if is_done { turn } else { turn.min(again) };
        again = if is_done { BEAT_AGAIN_AFTER } else { BEAT_EVERY.min(again * 2) };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            _ = raft_status.wait_for(|raft_status| raft_status.leader != leader) => {}
            () = observer.health_changes_from(own.health) => {}
            // The caller of an operator command waits until every replica knows the command.
            _ = state.wait_for(|state| state.operator_seq != operator_seq) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// Samples of the cluster time from leaders' replies.
#[derive(Default)]
struct LeaderTimeSamples {
    samples: Samples,
    /// The base of the last received time.
    base: i64,
    /// This replica follows the time.
    is_followed: bool,
}

/// Sends the report; true when the leader replied.
async fn send_report(
    inputs: &InputSource,
    observer: &ImdsPoller,
    leader: &str,
    (own, operator_seq): (ImdsReport, u64),
    told: &mut LeaderTimeSamples,
) -> bool {
    let cluster = &inputs.cluster;
    let Some(channel) = cluster.consensus.channel(leader) else {
        return false;
    };
    let reading = own_reading(cluster, observer);
    let knows = cluster.time.trust() == Trust::Known;
    let request = wire::BeatRequest {
        cluster: cluster.node.cluster.clone(),
        replica: cluster.node.name.to_string(),
        channel: Some(wire_health(own)),
        clock_difference_ms: reading.wall.filter(|_| told.is_followed),
        platform: reading.platform.filter(|_| told.is_followed).map(wire_platform),
        asking: reading.is_asking,
        known_time_ms: knows.then(|| cluster.time.now().0),
        time_base: told.base,
        policy: cluster.node.fingerprint.clone(),
        version: inputs.peers.own_version(),
        operator_seq,
    };
    let mut client = ContactClient::new(channel);
    let sent = clock::monotonic();
    match tokio::time::timeout(REPLY_WITHIN, client.beat(request)).await {
        Ok(Ok(reply)) => {
            let reply = reply.into_inner();
            told.base = reply.time_base;
            if let Some(best) = sample(sent, &reply).and_then(|sample| told.samples.add(leader, sample)) {
                let trust = Trust::parse(&reply.time_trust).unwrap_or_default();
                told.is_followed = cluster.time.follow(best.time, best.at, trust);
            }
            let platform = own_reading(cluster, observer).platform;
            inputs.peers.differences.measured(platform, cluster.time.trust(), cluster.time.now());
            inputs.peers.differences.record_leader_view(clock_differences(&reply.contacts));
            let told = reply.contacts.iter().filter(|each| !each.policy.is_empty());
            inputs
                .peers
                .policies
                .record_leader_view(told.map(|each| (VmName::new(&each.replica), each.policy.clone())).collect());
            let versions = reply.contacts.iter().filter(|each| each.version > 0);
            let versions = versions.map(|each| (VmName::new(&each.replica), each.version)).collect();
            inputs.peers.told_versions(versions);
            inputs.peers.record_leader_view(leader_view_from_wire(&reply.contacts));
            return true;
        }
        Ok(Err(status)) => {
            cluster.consensus.note_refusal(leader, &status);
            tracing::debug!(leader, %status, "status report not accepted by the leader");
        }
        Err(_) => tracing::debug!(leader, "status report not answered by the leader"),
    }
    false
}

/// A sample of the leader's time, taken as soon as the reply has arrived.
fn sample(sent: Timestamp, reply: &wire::BeatResponse) -> Option<Sample> {
    let round_trip = clock::monotonic().since(sent);
    Some(Sample { at: sent.plus(round_trip / 2), round_trip, time: Timestamp(reply.time_ms?) })
}

fn clock_differences(contacts: &[wire::ReplicaContact]) -> Ahead {
    let known = contacts.iter().filter_map(|each| Some((VmName::new(&each.replica), each.clock_difference_ms?)));
    known.collect()
}

fn leader_view_to_wire(contacts: &PeerTracker, members: &[VmName]) -> Vec<wire::ReplicaContact> {
    let (ahead, policies) = (contacts.differences.known(), contacts.policies.known());
    let versions = contacts.versions();
    let known = contacts.of(members, |at| at).into_iter();
    let silent = |since| u64::try_from(clock::monotonic().since(since).as_millis()).unwrap_or(u64::MAX);
    let told = known.map(|(name, contact)| wire::ReplicaContact {
        out_of_reach_ms: (!contact.reachable).then(|| silent(contact.since)),
        clock_difference_ms: ahead.get(&name).copied(),
        policy: policies.get(&name).cloned().unwrap_or_default(),
        version: versions.get(&name).copied().unwrap_or_default(),
        replica: name.to_string(),
        reachable: contact.reachable,
        channel: Some(wire_health(ImdsReport {
            health: contact.imds,
            document_age: contact.document_age,
            answers_in: contact.answers_in,
            can_acknowledge: contact.can_acknowledge,
        })),
        operator_seq: contact.operator_seq,
    });
    told.collect()
}

fn leader_view_from_wire(contacts: &[wire::ReplicaContact]) -> LeaderView {
    let word = |each: &wire::ReplicaContact| ViewedPeer {
        reachable: each.reachable,
        silent_for: each.out_of_reach_ms.map_or(Duration::ZERO, Duration::from_millis),
        health: health(each.channel.as_ref()),
        operator_seq: each.operator_seq,
    };
    contacts.iter().map(|each| (VmName::new(&each.replica), word(each))).collect()
}
