//! Asking a replica over its operator socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use crate::tls::cause;
use crate::wire::pb::allclear::operator::v1 as shown;
use crate::wire::pb::allclear::operator::v1::operator_client::OperatorClient;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// Bringing a new member up to date takes its time; the replica's own patience ends before this.
const CHANGE_WITHIN: Duration = Duration::from_secs(75);

#[derive(Debug, thiserror::Error)]
pub enum AskError {
    #[error("no replica answers at {}: {why}; {}", path.display(), hint(why))]
    NoAnswer { path: PathBuf, why: String },
    #[error("{0}")]
    NotFound(String),
    #[error("the answer could not be printed: {0}")]
    Output(String),
    #[error("the replica refused: {0}")]
    Refused(String),
    /// It may or may not be done.
    #[error("{0}")]
    Unclear(String),
}

/// The socket is there and not for everybody, or nobody serves it.
fn hint(why: &str) -> &'static str {
    if why.to_ascii_lowercase().contains("permission denied") {
        "ask as root, or as the user that the replica runs as"
    } else {
        "is `allclear run` running, and is --endpoint its operator socket?"
    }
}

/// A connection to one replica.
pub struct Asking {
    path: PathBuf,
    client: OperatorClient<Channel>,
}

impl Asking {
    pub async fn connect(path: &Path) -> Result<Self, AskError> {
        let no_answer = |why: String| AskError::NoAnswer { path: path.into(), why };
        let address = format!("unix://{}", path.display());
        let endpoint = Endpoint::from_shared(address).map_err(|error| no_answer(error.to_string()))?;
        let connected = endpoint.connect_timeout(ANSWER_WITHIN).connect().await;
        let channel = connected.map_err(|error| no_answer(cause(&error)))?;
        Ok(Self { path: path.into(), client: OperatorClient::new(channel) })
    }

    pub async fn status(&mut self) -> Result<shown::Status, AskError> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.get_status(shown::GetStatusRequest {})).await;
        self.read(answer)
    }

    pub async fn events(&mut self) -> Result<shown::EventList, AskError> {
        self.page(shown::ListEventsRequest::default()).await
    }

    /// One page of all events that are kept.
    pub async fn page(&mut self, request: shown::ListEventsRequest) -> Result<shown::EventList, AskError> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.list_events(request)).await;
        self.read(answer)
    }

    pub async fn event(&mut self, id: &str) -> Result<shown::Event, AskError> {
        let request = shown::GetEventRequest { id: id.into() };
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.get_event(request)).await;
        self.read(answer)
    }

    pub async fn members(&mut self) -> Result<shown::MemberList, AskError> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.list_members(shown::ListMembersRequest {})).await;
        self.read(answer)
    }

    pub async fn add_member(&mut self, request: shown::AddMemberRequest) -> Result<shown::AddMemberResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.add_member(request)).await;
        self.read(answer)
    }

    pub async fn remove_member(
        &mut self,
        request: shown::RemoveMemberRequest,
    ) -> Result<shown::RemoveMemberResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.remove_member(request)).await;
        self.read(answer)
    }

    pub async fn transfer_leader(
        &mut self,
        request: shown::TransferLeaderRequest,
    ) -> Result<shown::TransferLeaderResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.transfer_leader(request)).await;
        self.read(answer)
    }

    /// The id of the made-up event.
    pub async fn drill(&mut self, request: shown::DrillRequest) -> Result<String, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.drill(request)).await;
        Ok(self.read(answer)?.id)
    }

    pub async fn end_drill(&mut self, id: &str) -> Result<(), AskError> {
        let request = shown::EndDrillRequest { id: id.into() };
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.end_drill(request)).await;
        self.read(answer).map(drop)
    }

    pub async fn hold(&mut self, request: shown::HoldRequest) -> Result<shown::HoldResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.hold(request)).await;
        self.read(answer)
    }

    pub async fn release(&mut self, request: shown::ReleaseRequest) -> Result<shown::ReleaseResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.release(request)).await;
        self.read(answer)
    }

    pub async fn pause(&mut self, request: shown::PauseRequest) -> Result<shown::PauseResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.pause(request)).await;
        self.read(answer)
    }

    pub async fn resume(&mut self, request: shown::ResumeRequest) -> Result<shown::ResumeResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.resume(request)).await;
        self.read(answer)
    }

    pub async fn approve(&mut self, request: shown::ApproveRequest) -> Result<shown::ApproveResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.approve(request)).await;
        self.read(answer)
    }

    pub async fn skip(&mut self, request: shown::SkipRequest) -> Result<shown::SkipResponse, AskError> {
        let answer = tokio::time::timeout(CHANGE_WITHIN, self.client.skip(request)).await;
        self.read(answer)
    }

    /// The status now and after every change, until the replica stops.
    pub async fn watch(&mut self) -> Result<impl Stream<Item = Result<shown::Status, AskError>> + use<>, AskError> {
        let answer = tokio::time::timeout(ANSWER_WITHIN, self.client.watch(shown::WatchRequest {})).await;
        let path = self.path.clone();
        let stream = self.read(answer)?;
        Ok(stream.map(move |next| next.map_err(|status| failed(&path, &status))))
    }

    fn read<T>(
        &self,
        answer: Result<Result<tonic::Response<T>, Status>, tokio::time::error::Elapsed>,
    ) -> Result<T, AskError> {
        match answer {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(failed(&self.path, &status)),
            Err(_) => Err(AskError::NoAnswer { path: self.path.clone(), why: "it took too long".into() }),
        }
    }
}

fn failed(path: &Path, status: &Status) -> AskError {
    match status.code() {
        Code::NotFound => AskError::NotFound(status.message().into()),
        Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded | Code::Unknown => {
            AskError::NoAnswer { path: path.into(), why: status.message().into() }
        }
        Code::Aborted => AskError::Unclear(status.message().into()),
        _ => AskError::Refused(status.message().into()),
    }
}
