//! The client of a replica's operator socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;
use tonic::metadata::{BinaryMetadataValue, MetadataValue};
use tonic::service::Interceptor;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Response, Status};

use crate::net::tls::cause;
use allclear_wire::pb::allclear::operator::v1 as shown;
use allclear_wire::pb::allclear::operator::v1::operator_client::OperatorClient;

const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// A new member has to catch up; the replica's own time limit ends before this limit.
const CHANGE_WITHIN: Duration = Duration::from_secs(75);

#[derive(Debug, thiserror::Error)]
pub enum OperatorClientError {
    #[error("no replica answers at {}: {why}; {}", path.display(), hint(why))]
    NoAnswer { path: PathBuf, why: String },
    #[error("{0}")]
    NotFound(String),
    #[error("cannot print the answer: {0}")]
    Output(String),
    #[error("the replica refused: {0}")]
    Refused(String),
    /// The change may or may not be done.
    #[error("{0}")]
    Unclear(String),
}

/// A hint: the socket exists and denies this user, or has no server.
fn hint(why: &str) -> &'static str {
    if why.to_ascii_lowercase().contains("permission denied") {
        "run the command as root, or as the user of the replica"
    } else {
        "check that `allclear run` is running, and that --endpoint names its operator socket"
    }
}

/// The header with the name of the person who asks.
pub(super) const ASKED_BY: &str = "allclear-asked-by-bin";

/// Adds the name of the person who asks to every call.
#[derive(Clone)]
pub struct Introduction(Option<BinaryMetadataValue>);

impl Interceptor for Introduction {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(name) = self.0.clone() {
            request.metadata_mut().insert_bin(ASKED_BY, name);
        }
        Ok(request)
    }
}

pub type Client = OperatorClient<InterceptedService<Channel, Introduction>>;
pub type RpcResult<T> = Result<Response<T>, Status>;

/// A connection to one replica.
pub struct OperatorConnection {
    path: PathBuf,
    client: Client,
}

impl OperatorConnection {
    pub async fn connect(path: &Path) -> Result<Self, OperatorClientError> {
        Self::connect_as(path, None).await
    }

    /// Connects on behalf of a person. The replica records the name as the caller says it, beside the user id.
    pub async fn connect_as(path: &Path, name: Option<&str>) -> Result<Self, OperatorClientError> {
        let no_answer = |why: String| OperatorClientError::NoAnswer { path: path.into(), why };
        let address = format!("unix://{}", path.display());
        let endpoint = Endpoint::from_shared(address).map_err(|error| no_answer(error.to_string()))?;
        let connected = endpoint.connect_timeout(ANSWER_WITHIN).connect().await;
        let channel = connected.map_err(|error| no_answer(cause(&error)))?;
        let introduction = Introduction(name.map(|name| MetadataValue::from_bytes(name.as_bytes())));
        Ok(Self { path: path.into(), client: OperatorClient::with_interceptor(channel, introduction) })
    }

    pub async fn status(&mut self) -> Result<shown::Status, OperatorClientError> {
        self.query(async |client| client.get_status(shown::GetStatusRequest {}).await).await
    }

    pub async fn events(&mut self) -> Result<shown::EventList, OperatorClientError> {
        self.query(async |client| client.list_events(shown::ListEventsRequest::default()).await).await
    }

    /// Takes all events that the cluster keeps, or the events with changes since this time (RFC 3339), page by page, the
    /// oldest first.
    pub async fn all_events(
        &mut self,
        since: Option<String>,
        mut take: impl FnMut(Vec<shown::Event>) -> Result<(), OperatorClientError>,
    ) -> Result<(), OperatorClientError> {
        let mut after = String::new();
        loop {
            let request = shown::ListEventsRequest { all: true, after, since: since.clone() };
            let page = self.query(async |client| client.list_events(request).await).await?;
            take(page.events)?;
            match page.next {
                Some(next) => after = next,
                None => return Ok(()),
            }
        }
    }

    pub async fn event(&mut self, id: &str) -> Result<shown::Event, OperatorClientError> {
        let request = shown::GetEventRequest { id: id.into() };
        self.query(async |client| client.get_event(request).await).await
    }

    /// Runs a read-only call.
    pub async fn query<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Client) -> RpcResult<T>,
    ) -> Result<T, OperatorClientError> {
        let answer = timeout(ANSWER_WITHIN, call(&mut self.client)).await;
        let answer = answer.unwrap_or_else(|_| Err(not_in_time()));
        answer.map(Response::into_inner).map_err(|status| unanswered(&self.path, &status))
    }

    /// Runs a call with a change. The call is sent, so the change may be done although no answer came back.
    pub async fn change<T>(
        &mut self,
        call: impl AsyncFnOnce(&mut Client) -> RpcResult<T>,
    ) -> Result<T, OperatorClientError> {
        let answer = timeout(CHANGE_WITHIN, call(&mut self.client)).await;
        let answer = answer.unwrap_or_else(|_| Err(not_in_time()));
        answer.map(Response::into_inner).map_err(|status| unchanged_or_unclear(&self.path, &status))
    }

    /// Streams the status now and after every change, until the replica stops.
    pub async fn watch(
        &mut self,
    ) -> Result<impl Stream<Item = Result<shown::Status, OperatorClientError>> + use<>, OperatorClientError> {
        let stream = self.query(async |client| client.watch(shown::WatchRequest {}).await).await?;
        let path = self.path.clone();
        Ok(stream.map(move |next| next.map_err(|status| unanswered(&path, &status))))
    }
}

fn not_in_time() -> Status {
    Status::deadline_exceeded("the replica did not answer in time")
}

/// The call did not end by an answer of the replica: the connection broke, or the time was over.
fn is_broken(code: Code) -> bool {
    matches!(
        code,
        Code::Unavailable
            | Code::Cancelled
            | Code::Unknown
            | Code::DeadlineExceeded
            | Code::Internal
            | Code::DataLoss
            | Code::Aborted
    )
}

/// The answer of a replica that refuses the call. A socket without this service answers without a text.
fn refused(path: &Path, status: &Status) -> OperatorClientError {
    let why = status.message();
    OperatorClientError::Refused(if status.code() == Code::Unimplemented && why.is_empty() {
        format!(
            "{} does not serve operators: it may be the socket of workloads; name the operator socket with --endpoint, \
             the `socket` of [operator] in the configuration of the replica",
            path.display()
        )
    } else {
        why.into()
    })
}

/// The error of a query.
fn unanswered(path: &Path, status: &Status) -> OperatorClientError {
    let why = status.message().to_owned();
    match status.code() {
        Code::NotFound => OperatorClientError::NotFound(why),
        code if is_broken(code) => OperatorClientError::NoAnswer { path: path.into(), why },
        _ => refused(path, status),
    }
}

/// The error of a change that was sent. Only an answer of the replica says that nothing was changed.
fn unchanged_or_unclear(path: &Path, status: &Status) -> OperatorClientError {
    let why = status.message();
    match status.code() {
        Code::NotFound => OperatorClientError::NotFound(why.into()),
        // The replica says what may be done, and where to look.
        Code::Aborted => OperatorClientError::Unclear(why.into()),
        code if is_broken(code) => OperatorClientError::Unclear(format!(
            "{why}; the change may or may not be done: see `allclear status`, `allclear explain` or `allclear member \
             list` before you repeat the command"
        )),
        _ => refused(path, status),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_without_an_answer_is_unclear_and_a_query_without_one_has_no_replica() {
        for code in
            [Code::Unavailable, Code::Cancelled, Code::Unknown, Code::DeadlineExceeded, Code::Internal, Code::DataLoss]
        {
            let broken = Status::new(code, "it broke");
            let OperatorClientError::Unclear(said) = unchanged_or_unclear(Path::new("/socket"), &broken) else {
                panic!("{code}")
            };
            assert!(said.starts_with("it broke; the change may or may not be done: see `allclear status`"), "{said}");
            let query = unanswered(Path::new("/socket"), &broken);
            assert!(matches!(query, OperatorClientError::NoAnswer { .. }), "{code}");
        }
        for code in [Code::InvalidArgument, Code::FailedPrecondition, Code::PermissionDenied] {
            let refusal = unchanged_or_unclear(Path::new("/socket"), &Status::new(code, "no"));
            assert!(matches!(refusal, OperatorClientError::Refused(_)), "{code}");
        }
    }

    #[test]
    fn a_socket_that_serves_no_operators_is_named_as_such() {
        let other = Status::new(Code::Unimplemented, "");
        let path = Path::new("/run/allclear/workloads.sock");
        for error in [unanswered(path, &other), unchanged_or_unclear(path, &other)] {
            let said = error.to_string();
            let wanted =
                "/run/allclear/workloads.sock does not serve operators: it may be the socket of workloads; name";
            assert!(said.contains(wanted) && said.contains("`socket` of [operator]"), "{said}");
        }
    }
}
