//! The door of this room: everything a replica does with its consensus.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use openraft::Raft;
use openraft::rt::WatchReceiver as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::transport::Channel;
use tonic::{Extensions, Status};

use super::change::OnBehalf;
use super::cluster_service::ClusterService;
use super::contact::Start;
use super::disk::Disk;
use super::failure::{ConfirmError, Fatal, MembershipError, OpenError, ProposeError, TransferError};
use super::fold::Fold;
use super::log::LogStore;
use super::network::Network;
use super::node::{Node, Parts};
use super::options::{MAX_MESSAGE_BYTES, Options};
use super::peers::Peers;
use super::raft_service::RaftService;
use super::roster::Seat;
use super::shared::Shared;
use super::standing::Standing;
use super::state::State;
use super::types::SharedFold;
use crate::tls::Credentials;
use crate::wire::pb::allclear::cluster::v1::consensus_server::ConsensusServer;
use crate::wire::pb::allclear::raft::v1::raft_server::RaftServer;

const STOP_WITHIN: Duration = Duration::from_secs(5);

/// Who takes part, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Members {
    pub voters: Vec<String>,
    pub learners: Vec<String>,
}

/// A handle on this replica's consensus; cheap to clone.
#[derive(Clone)]
pub struct Consensus {
    node: Node,
}

impl Consensus {
    /// Opens the data directory, or makes it, and starts to take part. What comes back beside the handle is to be
    /// served on the replica's address; until then the others do not reach it.
    pub async fn open(options: Options, fold: impl Fold) -> Result<(Self, Routes), OpenError> {
        options.check()?;
        let Options { data_dir, cluster, replica, .. } = options.clone();
        let means = options.means;
        let opened = means.result_of(move || Disk::open_by(means, &data_dir, &cluster, &replica)).await;
        let disk = opened.map_err(|error| OpenError::Start(error.to_string()))??;
        Self::open_on(disk, options, Box::new(fold)).await
    }

    pub(super) async fn open_on(
        disk: Arc<Disk>,
        options: Options,
        fold: Box<dyn Fold>,
    ) -> Result<(Self, Routes), OpenError> {
        let peers = Arc::new(Peers::new(&options)?);
        let identity = disk.identity.clone();
        let let_go = disk.let_go();
        let (weak, start) = (Arc::downgrade(&disk), Start::now());
        let fold: SharedFold = Arc::new(RwLock::new(fold));
        let (publish, published) = watch::channel(None);
        let network = Network { cluster: identity.cluster.clone(), node: identity.node, peers: Arc::clone(&peers) };
        let state = State::new(Arc::clone(&disk), Arc::clone(&fold), publish);
        let raft = Raft::new(identity.node, options.raft()?, network, LogStore(disk), state).await;
        let raft = raft.map_err(|error| OpenError::Start(error.to_string()))?;
        let node = Node::new(Parts {
            raft,
            identity,
            options,
            peers,
            fold,
            published,
            heard: watch::Sender::new(None),
            outside: watch::Sender::new(Some("starting".into())),
            standing: watch::Sender::new(Standing::outside("starting")),
            turns: Mutex::default(),
            start,
            disk: weak,
            confirming: Shared::default(),
            changing: tokio::sync::Mutex::new(()),
            stop: CancellationToken::new(),
            let_go,
        });
        tokio::spawn(node.stop.clone().run_until_cancelled_owned(node.clone().form()));
        tokio::spawn(node.stop.clone().run_until_cancelled_owned(node.clone().watch_for_removal()));
        tokio::spawn(node.stop.clone().run_until_cancelled_owned(node.clone().keep_up()));
        tokio::spawn(node.clone().watch_standing());
        tokio::spawn(node.clone().beat());
        Ok((Self { node: node.clone() }, routes(&node)))
    }

    /// Has the proposal stamped, committed and applied, and returns the verdict. On any replica.
    pub async fn propose(&self, proposal: impl Into<Bytes>) -> Result<Bytes, ProposeError> {
        self.node.propose(proposal.into()).await
    }

    /// A linearizable read: when it returns, everything that was committed before the call is applied and published
    /// here. A quorum was asked, on whichever replica. Returns the position that was confirmed.
    pub async fn confirm(&self) -> Result<u64, ConfirmError> {
        self.node.confirm().await
    }

    pub fn standing(&self) -> watch::Receiver<Standing> {
        self.node.standing.subscribe()
    }

    /// The standing as it is at this moment. The published one is a moment old, or as old as a freeze was long.
    pub fn standing_now(&self) -> Standing {
        if !self.node.stop.is_cancelled() {
            self.node.update_standing();
        }
        self.node.standing.borrow().clone()
    }

    /// On the leader: when what each other voter acknowledged last was sent to it, by name. The voter heard this leader
    /// then or later, never earlier. Who acknowledged nothing in this term is left out. On everybody else: nothing.
    pub fn acknowledged(&self) -> BTreeMap<String, Instant> {
        self.node.acknowledged()
    }

    /// When a leader was last heard here; on the leader, when what a quorum acknowledged last was sent, which is now
    /// for the only voter. A leader that lost leadership keeps what it had. Nothing before the first.
    pub fn last_contact(&self) -> Option<Instant> {
        self.node.last_contact()
    }

    /// Whoever led before was last heard so long ago that another may be elected. On a leader: it was not handed over.
    pub fn leader_was_silent(&self) -> bool {
        let (shortest, _) = self.node.options.timing.election_timeout;
        self.node.heard.borrow().is_some_and(|heard| heard.elapsed() >= shortest)
    }

    /// What the log and the snapshots take on the disk; nothing where that cannot be told.
    pub fn bytes_on_disk(&self) -> Option<u64> {
        Disk::bytes(&self.node.options.data_dir)
    }

    /// The entries, as the fold is given them, behind what is applied here: on this replica's disk, and perhaps
    /// committed. To miss nothing take the tail before the state: what is applied in between is then in both, and what
    /// is in neither was not in this replica's log.
    pub async fn tail(&self) -> Result<Vec<Bytes>, Fatal> {
        self.node.tail().await
    }

    pub fn members(&self) -> Members {
        let membership = self.node.membership();
        let names = |nodes: Vec<u64>| {
            let mut names: Vec<_> =
                nodes.iter().filter_map(|node| Some(membership.get_node(node)?.replica.clone())).collect();
            names.sort();
            names
        };
        Members { voters: names(membership.voter_ids().collect()), learners: names(membership.learner_ids().collect()) }
    }

    /// False while it is no member, as far as it knows, or has yet to find out.
    pub fn takes_part(&self) -> bool {
        self.node.outside.borrow().is_none()
    }

    /// Before this replica acts without a leader: a leader of before cannot count on it any more once this returned
    /// true. On disk by then.
    pub async fn fence(&self) -> Result<bool, Fatal> {
        self.node.fence().await
    }

    /// On the leader: adds a running replica, as a voter while there is room. The address is where it is found unless
    /// the configuration says otherwise. Adding a member again changes nothing.
    pub async fn add_member(&self, replica: &str, address: &str) -> Result<(), MembershipError> {
        self.node.add_member(replica, address).await.map(drop)
    }

    /// On the leader: removes a member, also one that is gone. To remove itself it hands over and refuses.
    pub async fn remove_member(&self, replica: &str) -> Result<(), MembershipError> {
        self.node.remove_member(replica).await
    }

    /// On any replica: members and leadership as somebody wishes, who is named in the logs.
    pub fn on_behalf_of(&self, who: impl Into<String>) -> OnBehalf {
        OnBehalf { node: self.node.clone(), who: who.into() }
    }

    /// On any replica: who takes part and who answers now. Asks everybody, which takes at most about a second.
    pub async fn roster(&self) -> Vec<Seat> {
        self.node.roster().await
    }

    /// On the leader: hands leadership to a voter and waits until it leads.
    pub async fn transfer_leadership(&self, to: &str) -> Result<(), TransferError> {
        self.node.transfer_leadership(to).await
    }

    /// The connection to a configured replica or a member, shared by everybody and made when it is first used.
    pub fn channel(&self, replica: &str) -> Option<Channel> {
        let logged = || {
            let membership = self.node.membership();
            let (_, member) = membership.nodes().find(|(_, member)| member.replica == replica)?;
            self.node.peers.channel_or_dial(replica, &member.address).ok()
        };
        self.node.peers.channel(replica).or_else(logged)
    }

    /// A call over its connection was refused: where the replica is found by name, it may be somebody else's by now.
    pub fn refused_by(&self, replica: &str, status: &Status) {
        self.node.peers.refused(replica, status);
    }

    /// Why no connection to a replica could be opened from here the last time; nothing where one could.
    pub fn obstacle(&self, replica: &str) -> Option<String> {
        self.node.peers.obstacle(replica)
    }

    /// Refuses a call in a replica's name by whoever shows another one's certificate.
    pub fn is_from(&self, extensions: &Extensions, replica: &str) -> Result<(), Status> {
        self.node.is_from(extensions, replica)
    }

    /// What this replica is known by; nothing where it speaks plain text.
    pub fn tls(&self) -> Option<&Credentials> {
        self.node.options.tls.as_deref()
    }

    /// This data directory's node id; another one after its disk was lost.
    pub fn node_id(&self) -> u64 {
        self.node.identity.node
    }

    /// Ends when this replica must exit: nothing more is acknowledged then. Never ends after a shutdown.
    pub async fn fatal(&self) -> Fatal {
        let mut metrics = self.node.raft.metrics();
        loop {
            let stopped = self.node.stopped();
            if self.node.stop.is_cancelled() {
                std::future::pending::<()>().await;
            } else if let Some(reason) = stopped {
                return Fatal(reason);
            }
            if metrics.changed().await.is_err() && !self.node.stop.is_cancelled() {
                return Fatal(self.node.stopped().unwrap_or_else(|| "consensus ended without a reason".into()));
            }
        }
    }

    /// Stops taking part and lets go of the data directory; false when that did not happen in time.
    pub async fn shutdown(&self) -> bool {
        self.node.stop.cancel();
        let mut let_go = self.node.let_go.clone();
        let stopped = async {
            let ended = self.node.raft.shutdown().await.is_ok();
            // Nobody ever sends on it: it closes with the directory.
            while let_go.changed().await.is_ok() {}
            ended
        };
        timeout(STOP_WITHIN, stopped).await.unwrap_or(false)
    }
}

fn routes(node: &Node) -> Routes {
    let raft = RaftServer::new(RaftService(node.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    let cluster = ConsensusServer::new(ClusterService(node.clone()))
        .max_decoding_message_size(MAX_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_MESSAGE_BYTES);
    Routes::new(raft).add_service(cluster)
}
