//! The queue of operators' requests for an approval without a quorum.

use tokio::sync::{Mutex, mpsc, oneshot};

use allclear_core::model::claim::PostOutcome;
use allclear_core::model::id::EventId;
use allclear_core::model::isolated_approval::RequestedBy;
use allclear_core::procedure::isolated_approval::{IsolatedRequest, NotApproved};

/// A request, and the caller waiting for the answer.
pub(super) struct QueuedRequest {
    pub(super) request: IsolatedRequest,
    answer: oneshot::Sender<Result<PostOutcome, NotApproved>>,
}

/// The queue of requests. A single request waits at a time; further callers wait for the place of the request.
pub struct IsolatedRequests {
    sender: mpsc::Sender<QueuedRequest>,
    receiver: Mutex<mpsc::Receiver<QueuedRequest>>,
}

impl Default for IsolatedRequests {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel(1);
        Self { sender, receiver: Mutex::new(receiver) }
    }
}

impl QueuedRequest {
    pub(super) fn answer(self, answer: Result<PostOutcome, NotApproved>) {
        // A disconnected caller reads the outcome in the event's timeline.
        drop(self.answer.send(answer));
    }
}

impl IsolatedRequests {
    /// The answer follows when the journal has the outcome of the post; `None` when the replica stops before. A caller
    /// that drops this future before the request is taken withdraws the request.
    pub async fn approve(
        &self,
        event: EventId,
        revision: u64,
        requested_by: RequestedBy,
    ) -> Option<Result<PostOutcome, NotApproved>> {
        let (answer, answered) = oneshot::channel();
        let request = IsolatedRequest { event, revision, requested_by };
        self.sender.send(QueuedRequest { request, answer }).await.ok()?;
        answered.await.ok()
    }

    /// The next request whose caller still waits.
    pub(super) async fn next(&self) -> QueuedRequest {
        let mut receiver = self.receiver.lock().await;
        loop {
            match receiver.recv().await {
                Some(request) if request.answer.is_closed() => {}
                Some(request) => return request,
                // Never: this queue holds a sender itself.
                None => std::future::pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_request_whose_caller_has_gone_is_not_carried_out() {
        let requests = IsolatedRequests::default();
        let by = |who: &str| RequestedBy { who: who.into(), reason: "why".into() };
        let gone = requests.approve(EventId::new("e1"), 1, by("ada"));
        assert!(tokio::time::timeout(Duration::from_millis(1), gone).await.is_err(), "nobody answers it");
        let (answered, ()) = tokio::join!(requests.approve(EventId::new("e2"), 2, by("eve")), async {
            let next = requests.next().await;
            let asked = &next.request;
            assert_eq!((asked.event.as_str(), asked.revision, asked.requested_by.who.as_str()), ("e2", 2, "eve"));
            next.answer(Ok(PostOutcome::Accepted));
        });
        assert!(matches!(answered, Some(Ok(PostOutcome::Accepted))));
    }
}
