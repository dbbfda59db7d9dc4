//! Status of the replicas, each queried over the operator socket.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::replica::LocalReplica;
use allclear_core::model::id::EventId;
use allclear_server::grpc::client::{OperatorClientError, OperatorConnection};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// Timeout of a query. A slower replica counts as not answering.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);
const ASK_EVERY: Duration = Duration::from_millis(50);

/// The answer of one replica.
pub(crate) struct ReplicaStatus {
    pub(crate) status: shown::Status,
    pub(crate) events: Vec<shown::Event>,
}

#[derive(Clone)]
pub(crate) struct ReplicaSnapshot {
    pub(crate) name: String,
    /// `None` while the replica does not answer.
    pub(crate) answer: Option<Arc<ReplicaStatus>>,
}

/// The status of all replicas at one time.
#[derive(Default)]
pub(crate) struct ClusterSnapshot {
    pub(crate) replicas: Vec<ReplicaSnapshot>,
}

/// Polls each replica in a task of its own: a replica without an answer delays no other replica.
pub(crate) struct StatusClients {
    lines: Vec<(String, watch::Receiver<Option<Arc<ReplicaStatus>>>)>,
    /// The polling tasks end with the `StatusClients`.
    _asking: JoinSet<()>,
}

impl StatusClients {
    pub(crate) fn to(replicas: &[LocalReplica]) -> Self {
        let mut asking = JoinSet::new();
        let line = |replica: &LocalReplica| {
            let (said, heard) = watch::channel(None);
            asking.spawn(ask_again_and_again(replica.socket.clone(), said));
            (replica.name.clone(), heard)
        };
        Self { lines: replicas.iter().map(line).collect(), _asking: asking }
    }

    /// The last answer of each replica; answers of stopped replicas are ignored.
    pub(crate) fn look(&self, replicas: &[LocalReplica]) -> ClusterSnapshot {
        let runs = |name: &str| replicas.iter().any(|replica| replica.name == name && replica.process.runs());
        let seen = |(name, heard): &(String, watch::Receiver<Option<Arc<ReplicaStatus>>>)| ReplicaSnapshot {
            name: name.clone(),
            answer: heard.borrow().clone().filter(|_| runs(name)),
        };
        ClusterSnapshot { replicas: self.lines.iter().map(seen).collect() }
    }
}

async fn ask_again_and_again(socket: PathBuf, said: watch::Sender<Option<Arc<ReplicaStatus>>>) {
    let mut asking = None;
    loop {
        let answer = timeout(ANSWER_WITHIN, ask(&socket, &mut asking)).await.ok().and_then(Result::ok);
        if answer.is_none() {
            asking = None;
        }
        said.send_replace(answer.map(Arc::new));
        sleep(ASK_EVERY).await;
    }
}

async fn ask(socket: &Path, asking: &mut Option<OperatorConnection>) -> Result<ReplicaStatus, OperatorClientError> {
    let asking = match asking {
        Some(asking) => asking,
        None => asking.insert(OperatorConnection::connect(socket).await?),
    };
    Ok(ReplicaStatus { status: asking.status().await?, events: asking.events().await?.events })
}

impl ClusterSnapshot {
    pub(crate) fn answers(&self) -> impl Iterator<Item = (&str, &ReplicaStatus)> {
        self.replicas.iter().filter_map(|seen| Some((seen.name.as_str(), seen.answer.as_deref()?)))
    }

    /// Name and term of the leader: the replica with the role `leader` in the latest term.
    pub(crate) fn leader(&self) -> Option<(&str, u64)> {
        let leaders = self.answers().filter(|(_, answer)| answer.status.role == "leader");
        leaders.map(|(name, answer)| (name, answer.status.term)).max_by_key(|(_, term)| *term)
    }

    /// The event as known to the replica with the highest revision of the event.
    pub(crate) fn event(&self, id: &EventId) -> Option<&shown::Event> {
        let known = self.answers().flat_map(|(_, answer)| &answer.events);
        known.filter(|event| EventId::new(&event.id) == *id).max_by_key(|event| event.revision)
    }

    /// Replicas that answer and for which this event is not closed. Replicas that were removed with their VM are left
    /// out, for these receive no updates any more.
    pub(crate) fn not_closed(&self, id: &EventId) -> Vec<&str> {
        let is_closed = |answer: &ReplicaStatus| {
            answer.events.iter().any(|event| EventId::new(&event.id) == *id && event.stage == "closed")
        };
        let takes_part = |answer: &ReplicaStatus| answer.status.role != "outside";
        let open = self.answers().filter(|(_, answer)| takes_part(answer) && !is_closed(answer));
        open.map(|(name, _)| name).collect()
    }

    /// Why it is too early to begin; `None` when every replica answers, is healthy, and agrees on the leader.
    pub(crate) fn not_ready(&self) -> Option<String> {
        if let Some(seen) = self.replicas.iter().find(|seen| seen.answer.is_none()) {
            return Some(format!("{} does not answer", seen.name));
        }
        let Some((leader, _)) = self.leader() else { return Some("no replica leads".into()) };
        for (name, answer) in self.answers() {
            let status = &answer.status;
            if status.leader.as_deref() != Some(leader) || !status.quorum {
                return Some(format!("{name} does not follow {leader} yet"));
            }
            let blind = status.replicas.iter().find(|replica| !replica.reachable || replica.metadata != "healthy");
            if let Some(replica) = blind {
                return Some(format!("for {name}, the metadata of {} is {}", replica.name, replica.metadata));
            }
            if status.workloads.len() < self.replicas.len() {
                return Some(format!("for {name}, {} workloads are registered", status.workloads.len()));
            }
        }
        None
    }
}
