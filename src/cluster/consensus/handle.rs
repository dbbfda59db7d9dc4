//! The public handle of consensus.

use std::sync::{Arc, Mutex, RwLock};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use openraft::Raft;
use openraft::rt::WatchReceiver as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::service::Routes;
use tonic::transport::Channel;

use super::authentication::slow_down;
use super::cluster_service::ClusterService;
use super::disk::Disk;
use super::failure::OpenError;
use super::join_requests::JoinRequests;
use super::log::LogStore;
use super::member_list::MemberNames;
use super::membership_plan::left_behind;
use super::membership_request::OperatorContext;
use super::network::Network;
use super::node::{Consensus, Parts};
use super::options::{MAX_ENTRY_BYTES, MAX_MESSAGE_BYTES, MAX_SNAPSHOT_BYTES, Options};
use super::peers::Peers;
use super::raft_service::RaftService;
use super::raft_status::RaftStatus;
use super::single_flight::SingleFlight;
use super::start::Start;
use super::state_machine::StateMachine;
use super::state_machine_store::StateMachineStore;
use super::types::SharedStateMachine;
use super::vouches::Vouches;
use crate::net::limits::{MessageBudget, count_messages};
use crate::net::tls::Credentials;
use allclear_wire::pb::allclear::cluster::v1 as pb;
use allclear_wire::pb::allclear::cluster::v1::consensus_server::ConsensusServer;
use allclear_wire::pb::allclear::raft::v1::raft_server::RaftServer;

const STOP_WITHIN: Duration = Duration::from_secs(5);
const OF_RAFT: &str = "/allclear.raft.v1.Raft/";
/// The bytes of messages received and not answered yet: a snapshot, and four of the largest other messages.
const ASKED_BYTES: usize = MAX_SNAPSHOT_BYTES + 4 * MAX_MESSAGE_BYTES;
/// The bytes for callers with permission for hello only: a removed replica receives the reason for its rejection.
const ASKED_BYTES_OF_OTHERS: usize = 1 << 20;

impl Consensus {
    /// Opens or creates the data directory, and starts to take part. The returned routes are to be served on the
    /// replica's address; until then this replica is unreachable.
    pub fn open(
        options: Options,
        state_machine: impl StateMachine,
    ) -> BoxFuture<'static, Result<(Self, Routes), OpenError>> {
        Self::open_boxed(options, Box::new(state_machine))
    }

    /// Boxed, because the caller's crate would otherwise compile openraft once more.
    fn open_boxed(
        options: Options,
        state_machine: Box<dyn StateMachine>,
    ) -> BoxFuture<'static, Result<(Self, Routes), OpenError>> {
        let opened = async {
            options.check()?;
            let Options { data_dir, cluster, replica, .. } = options.clone();
            let environment = options.environment;
            let opened =
                environment.result_of(move || Disk::open_by(environment, &data_dir, &cluster, Some(&replica))).await;
            let disk = opened.map_err(|error| OpenError::Start(error.to_string()))??;
            Self::open_on(disk, options, state_machine).await
        };
        opened.boxed()
    }

    pub(super) async fn open_on(
        disk: Arc<Disk>,
        options: Options,
        state_machine: Box<dyn StateMachine>,
    ) -> Result<(Self, Routes), OpenError> {
        let peers = Arc::new(Peers::new(&options)?);
        let identity = disk.identity.clone();
        let let_go = disk.closed();
        let (weak, start) = (Arc::downgrade(&disk), Start::now());
        let state_machine: SharedStateMachine = Arc::new(RwLock::new(state_machine));
        let (publish, published) = watch::channel(None);
        let term = disk.term.clone();
        let network = Network {
            cluster: identity.cluster.clone(),
            node: identity.node,
            peers: Arc::clone(&peers),
            term: term.clone(),
        };
        let state = StateMachineStore::new(Arc::clone(&disk), Arc::clone(&state_machine), publish);
        state.check()?;
        let raft = Raft::new(identity.node, options.raft()?, network, LogStore(disk), state).await;
        let raft = raft.map_err(|error| OpenError::Start(error.to_string()))?;
        let opened = Self::new(Parts {
            raft,
            identity,
            options,
            peers,
            state_machine,
            published,
            start,
            heard: watch::Sender::new(None),
            outside: watch::Sender::new(Some("starting".into())),
            unreadable: watch::Sender::new(None),
            status: watch::Sender::new(RaftStatus::outside("starting")),
            turns: Mutex::default(),
            disk: weak,
            confirming: SingleFlight::default(),
            askers: JoinRequests::default(),
            words: Vouches::default(),
            term,
            changing: tokio::sync::Mutex::new(()),
            stop: CancellationToken::new(),
            let_go,
        });
        tokio::spawn(opened.stop.clone().run_until_cancelled_owned(opened.clone().bootstrap()));
        tokio::spawn(opened.stop.clone().run_until_cancelled_owned(opened.clone().run_autopilot()));
        tokio::spawn(opened.stop.clone().run_until_cancelled_owned(opened.clone().keep_the_log_small()));
        tokio::spawn(opened.clone().watch_standing());
        Ok((opened.clone(), routes(&opened)))
    }

    pub fn status(&self) -> watch::Receiver<RaftStatus> {
        self.status.subscribe()
    }

    /// The current Raft status. The published status is a moment old, or as old as a freeze was long.
    pub fn status_now(&self) -> RaftStatus {
        if !self.stop.is_cancelled() {
            self.update_status();
        }
        self.status.borrow().clone()
    }

    /// True if the previous leader was last heard so long ago that another replica may be elected. On a leader:
    /// leadership was not transferred.
    pub fn leader_was_silent(&self) -> bool {
        let (shortest, _) = self.options.timing.election_timeout;
        self.heard.borrow().is_some_and(|heard| heard.elapsed() >= shortest)
    }

    /// The bytes of the log and the snapshots on the disk; `None` if unknown.
    pub fn bytes_on_disk(&self) -> Option<u64> {
        Disk::bytes(&self.options.data_dir)
    }

    /// The members, each name once. This replica votes only by its own node id, and not by the node id of a lost disk.
    pub fn members(&self) -> MemberNames {
        MemberNames::as_known_by(&self.membership(), &self.identity)
    }

    /// Records a call of a replica that an operator removed.
    pub fn note_removed(&self, replica: &str) {
        self.askers.record_removed(replica, std::time::Instant::now());
    }

    /// The replicas that an operator removed, and that called this replica within the last seconds.
    pub fn removed_callers(&self) -> Vec<String> {
        self.askers.removed(std::time::Instant::now())
    }

    /// True if the vote of this replica's name belongs to another node: the node of a lost or replaced disk.
    pub fn is_left_behind(&self) -> bool {
        left_behind(&self.membership(), &self.identity.replica, self.identity.node).is_some()
    }

    /// False while this replica is no member to its own knowledge, or does not know yet, and while it cannot follow.
    pub fn is_member(&self) -> bool {
        self.outside.borrow().is_none() && self.unreadable.borrow().is_none()
    }

    /// Requests about members and leadership, on any replica; the requester is named in the logs.
    pub fn on_behalf_of(&self, who: impl Into<String>) -> OperatorContext {
        OperatorContext { consensus: self.clone(), who: who.into() }
    }

    /// The shared connection to a configured replica or a member, opened at first use.
    pub fn channel(&self, replica: &str) -> Option<Channel> {
        let logged = || {
            let membership = self.membership();
            let (_, member) = membership.nodes().find(|(_, member)| member.replica == replica)?;
            self.peers.channel_or_dial(replica, &member.address).ok()
        };
        self.peers.channel(replica).or_else(logged)
    }

    /// Records a rejected call on a connection: a host name may lead to another replica by now.
    pub fn note_refusal(&self, replica: &str, status: &Status) {
        self.peers.note_refusal(replica, status);
    }

    /// The reason why the last attempt to connect to a replica from here failed; `None` if the attempt succeeded.
    pub fn last_dial_error(&self, replica: &str) -> Option<String> {
        self.peers.last_dial_error(replica)
    }

    /// The credentials of this replica; `None` with plain text.
    pub fn tls(&self) -> Option<&Credentials> {
        self.options.tls.as_deref()
    }

    /// The node id of this data directory; a different id after the loss of the disk.
    pub fn node_id(&self) -> u64 {
        self.identity.node
    }

    /// Ends when this replica must exit: nothing more is acknowledged then. Never ends after a shutdown.
    pub async fn fatal(&self) -> String {
        let mut metrics = self.raft.metrics();
        loop {
            let stopped = self.stopped();
            if self.stop.is_cancelled() {
                std::future::pending::<()>().await;
            } else if let Some(reason) = stopped {
                return reason;
            }
            if metrics.changed().await.is_err() && !self.stop.is_cancelled() {
                return self.stopped().unwrap_or_else(|| "consensus ended without a reason".into());
            }
        }
    }

    /// Notifies the leader of this replica's stop, so that a new disk under its name need not wait for long.
    pub async fn sign_off(&self) {
        let leader = self.leader_heard().filter(|(node, _)| *node != self.identity.node);
        if let Some((_, leader)) = leader
            && let Ok(channel) = self.peers.channel_or_dial(&leader.replica, &leader.address)
        {
            let greeting = pb::Greeting { signs_off: true, ..self.greeting() };
            if let Err(error) = self.send_hello_as(greeting, &leader.replica, channel).await {
                tracing::debug!(error, "leader not notified of this replica's stop");
            }
        }
    }

    /// Stops taking part and releases the data directory; false if not done in time.
    pub async fn shutdown(&self) -> bool {
        self.stop.cancel();
        let mut let_go = self.let_go.clone();
        let stopped = async {
            let ended = self.raft.shutdown().await.is_ok();
            // No message is ever sent: the channel closes with the directory.
            while let_go.changed().await.is_ok() {}
            ended
        };
        timeout(STOP_WITHIN, stopped).await.unwrap_or(false)
    }
}

fn routes(consensus: &Consensus) -> Routes {
    let raft = RaftServer::new(RaftService::new(consensus.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let cluster = ConsensusServer::new(ClusterService(consensus.clone()))
        .max_decoding_message_size(MAX_ENTRY_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let [asked, asked_by_others] = [ASKED_BYTES, ASKED_BYTES_OF_OTHERS].map(|most| Arc::new(MessageBudget::new(most)));
    let node = consensus.clone();
    // By the head of the call: a caller without permission takes no budget from permitted callers.
    count_messages(Routes::new(raft).add_service(cluster), move |path, caller| {
        if node.may_speak(caller) {
            return Ok(asked.clone());
        }
        if path.starts_with(OF_RAFT) {
            node.authenticate_replica(caller)?;
        }
        slow_down(caller);
        Ok(asked_by_others.clone())
    })
}
