//! What the replicas say, each asked over its operator socket.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::timeout;

use super::replica::Replica;
use crate::machine::id::EventId;
use crate::rpc::client::{AskError, Asking};
use crate::wire::pb::allclear::operator::v1 as shown;

/// One that takes longer is passed over this time.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// Asks one replica again and again over one connection.
struct Line {
    name: String,
    socket: PathBuf,
    asking: Option<Asking>,
}

/// What one replica said.
pub(super) struct Answer {
    pub(super) status: shown::Status,
    pub(super) events: Vec<shown::Event>,
}

pub(super) struct Seen {
    pub(super) name: String,
    /// Nothing while it does not answer.
    pub(super) answer: Option<Answer>,
}

/// All of them at one moment.
#[derive(Default)]
pub(super) struct Sight {
    pub(super) replicas: Vec<Seen>,
}

pub(super) struct Lines(Vec<Line>);

impl Lines {
    pub(super) fn to(replicas: &[Replica]) -> Self {
        let line =
            |replica: &Replica| Line { name: replica.name.clone(), socket: replica.socket.clone(), asking: None };
        Self(replicas.iter().map(line).collect())
    }

    pub(super) async fn look(&mut self) -> Sight {
        let replicas = join_all(self.0.iter_mut().map(Line::look)).await;
        Sight { replicas }
    }
}

impl Line {
    async fn look(&mut self) -> Seen {
        let answer = timeout(ANSWER_WITHIN, self.ask()).await.ok().and_then(Result::ok);
        if answer.is_none() {
            self.asking = None;
        }
        Seen { name: self.name.clone(), answer }
    }

    async fn ask(&mut self) -> Result<Answer, AskError> {
        let asking = match &mut self.asking {
            Some(asking) => asking,
            None => self.asking.insert(Asking::connect(&self.socket).await?),
        };
        Ok(Answer { status: asking.status().await?, events: asking.events().await?.events })
    }
}

impl Sight {
    pub(super) fn answers(&self) -> impl Iterator<Item = (&str, &Answer)> {
        self.replicas.iter().filter_map(|seen| Some((seen.name.as_str(), seen.answer.as_ref()?)))
    }

    /// Who leads by its own word, in the latest term.
    pub(super) fn leader(&self) -> Option<(&str, u64)> {
        let leaders = self.answers().filter(|(_, answer)| answer.status.role == "leader");
        leaders.map(|(name, answer)| (name, answer.status.term)).max_by_key(|(_, term)| *term)
    }

    /// As the replica knows it that has heard most of it.
    pub(super) fn event(&self, id: &EventId) -> Option<&shown::Event> {
        let known = self.answers().flat_map(|(_, answer)| &answer.events);
        known.filter(|event| EventId::new(&event.id) == *id).max_by_key(|event| event.revision)
    }

    /// Replicas that answer and for which this event is not closed.
    pub(super) fn not_closed(&self, id: &EventId) -> Vec<&str> {
        let is_closed = |answer: &Answer| {
            answer.events.iter().any(|event| EventId::new(&event.id) == *id && event.stage == "closed")
        };
        self.answers().filter(|(_, answer)| !is_closed(answer)).map(|(name, _)| name).collect()
    }

    /// Why it is too early to begin; nothing when everybody is there, healthy, and agrees who leads.
    pub(super) fn not_ready(&self) -> Option<String> {
        if let Some(seen) = self.replicas.iter().find(|seen| seen.answer.is_none()) {
            return Some(format!("{} does not answer", seen.name));
        }
        let Some((leader, _)) = self.leader() else { return Some("nobody leads".into()) };
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
