//! What operators ask of a replica over its socket.

use std::pin::Pin;

use futures_util::Stream;
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use tonic::service::Routes;
use tonic::{Request, Response, Status};

use crate::replica::view::View;
use crate::wire::pb::allclear::operator::v1 as shown;
use crate::wire::pb::allclear::operator::v1::operator_server::{self, OperatorServer};

struct Answers {
    view: View,
    stop: CancellationToken,
}

/// The operator's service.
pub fn operator_routes(view: View, stop: CancellationToken) -> Routes {
    Routes::new(OperatorServer::new(Answers { view, stop }))
}

#[tonic::async_trait]
impl operator_server::Operator for Answers {
    async fn get_status(&self, _: Request<shown::GetStatusRequest>) -> Result<Response<shown::Status>, Status> {
        Ok(Response::new(self.view.status()))
    }

    async fn list_events(&self, _: Request<shown::ListEventsRequest>) -> Result<Response<shown::EventList>, Status> {
        Ok(Response::new(self.view.events()))
    }

    async fn get_event(&self, request: Request<shown::GetEventRequest>) -> Result<Response<shown::Event>, Status> {
        let id = request.into_inner().id;
        let unknown = || Status::not_found(format!("no event {id:?} is known here; `allclear events` lists them"));
        self.view.event(&id).map(Response::new).ok_or_else(unknown)
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<shown::Status, Status>> + Send>>;

    async fn watch(&self, _: Request<shown::WatchRequest>) -> Result<Response<Self::WatchStream>, Status> {
        let (view, stop) = (self.view.clone(), self.stop.clone());
        let changes = view.changes();
        let first = Some((view.clone(), changes, stop, true));
        let statuses = stream::unfold(first, |watching| async {
            let (view, mut changes, stop, is_first) = watching?;
            if !is_first {
                let goes_on = stop.run_until_cancelled(changes.next()).await;
                if goes_on != Some(true) {
                    return Some((Err(Status::unavailable("this replica stops")), None));
                }
            }
            Some((Ok(view.status()), Some((view, changes, stop, false))))
        });
        Ok(Response::new(Box::pin(statuses)))
    }
}
