//! What a replica asks of the service, whoever answers: the endpoint over HTTP, or another one in a simulation.

use futures_util::future::BoxFuture;

use super::approval::Approval;
use super::endpoint::{Endpoint, Polled};
use super::no_information::NoInformation;
use allclear_core::model::id::EventId;

/// The way of one VM to its metadata service.
pub trait MetadataService: Send + Sync {
    /// What is announced now.
    ///
    /// # Errors
    /// [`NoInformation`], which is never "no events".
    fn poll(&self) -> BoxFuture<'_, Result<Polled, NoInformation>>;

    /// The same at once, for an approval: polls give way to it.
    ///
    /// # Errors
    /// [`NoInformation`], which is never "no events".
    fn look(&self) -> BoxFuture<'_, Result<Polled, NoInformation>>;

    /// Posts the approval of one event, once.
    fn approve<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Approval>;
}

impl MetadataService for Endpoint {
    fn poll(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        Box::pin(self.poll())
    }

    fn look(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        Box::pin(self.look())
    }

    fn approve<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Approval> {
        Box::pin(self.approve(event))
    }
}
