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

type Answer<T> = Result<T, AskError>;

/// A connection to one replica.
pub struct Asking {
    path: PathBuf,
    client: OperatorClient<Channel>,
}

impl Asking {
    pub async fn connect(path: &Path) -> Answer<Self> {
        let no_answer = |why: String| AskError::NoAnswer { path: path.into(), why };
        let address = format!("unix://{}", path.display());
        let endpoint = Endpoint::from_shared(address).map_err(|error| no_answer(error.to_string()))?;
        let connected = endpoint.connect_timeout(ANSWER_WITHIN).connect().await;
        let channel = connected.map_err(|error| no_answer(cause(&error)))?;
        Ok(Self { path: path.into(), client: OperatorClient::new(channel) })
    }

    pub async fn status(&mut self) -> Answer<shown::Status> {
        self.within(ANSWER_WITHIN, self.client.clone().get_status(shown::GetStatusRequest {})).await
    }

    pub async fn events(&mut self) -> Answer<shown::EventList> {
        self.page(shown::ListEventsRequest::default()).await
    }

    /// One page of all events that are kept.
    pub async fn page(&mut self, request: shown::ListEventsRequest) -> Answer<shown::EventList> {
        self.within(ANSWER_WITHIN, self.client.clone().list_events(request)).await
    }

    pub async fn event(&mut self, id: &str) -> Answer<shown::Event> {
        let request = shown::GetEventRequest { id: id.into() };
        self.within(ANSWER_WITHIN, self.client.clone().get_event(request)).await
    }

    pub async fn members(&mut self) -> Answer<shown::MemberList> {
        self.within(ANSWER_WITHIN, self.client.clone().list_members(shown::ListMembersRequest {})).await
    }

    pub async fn add_member(&mut self, request: shown::AddMemberRequest) -> Answer<shown::AddMemberResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().add_member(request)).await
    }

    pub async fn remove_member(&mut self, request: shown::RemoveMemberRequest) -> Answer<shown::RemoveMemberResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().remove_member(request)).await
    }

    pub async fn transfer_leader(
        &mut self,
        request: shown::TransferLeaderRequest,
    ) -> Answer<shown::TransferLeaderResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().transfer_leader(request)).await
    }

    /// The id of the made-up event.
    pub async fn drill(&mut self, request: shown::DrillRequest) -> Answer<String> {
        Ok(self.within(CHANGE_WITHIN, self.client.clone().drill(request)).await?.id)
    }

    pub async fn end_drill(&mut self, id: &str) -> Answer<()> {
        let request = shown::EndDrillRequest { id: id.into() };
        self.within(CHANGE_WITHIN, self.client.clone().end_drill(request)).await.map(drop)
    }

    pub async fn hold(&mut self, request: shown::HoldRequest) -> Answer<shown::HoldResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().hold(request)).await
    }

    pub async fn release(&mut self, request: shown::ReleaseRequest) -> Answer<shown::ReleaseResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().release(request)).await
    }

    pub async fn pause(&mut self, request: shown::PauseRequest) -> Answer<shown::PauseResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().pause(request)).await
    }

    pub async fn resume(&mut self, request: shown::ResumeRequest) -> Answer<shown::ResumeResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().resume(request)).await
    }

    pub async fn approve(&mut self, request: shown::ApproveRequest) -> Answer<shown::ApproveResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().approve(request)).await
    }

    pub async fn skip(&mut self, request: shown::SkipRequest) -> Answer<shown::SkipResponse> {
        self.within(CHANGE_WITHIN, self.client.clone().skip(request)).await
    }

    /// The status now and after every change, until the replica stops.
    pub async fn watch(&mut self) -> Result<impl Stream<Item = Result<shown::Status, AskError>> + use<>, AskError> {
        let path = self.path.clone();
        let stream = self.within(ANSWER_WITHIN, self.client.clone().watch(shown::WatchRequest {})).await?;
        Ok(stream.map(move |next| next.map_err(|status| failed(&path, &status))))
    }

    async fn within<T>(
        &self,
        within: Duration,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Answer<T> {
        match tokio::time::timeout(within, answer).await {
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
