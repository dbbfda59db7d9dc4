//! Requests of a replica to the metadata service, implemented by the HTTP endpoint or by a simulation.

use core::time::Duration;

use futures_util::future::BoxFuture;

use super::approval::Approval;
use super::endpoint::{Endpoint, Polled};
use super::no_information::NoInformation;
use allclear_core::model::id::EventId;

/// The metadata service of one VM.
pub trait MetadataService: Send + Sync {
    /// Polls the current document.
    ///
    /// # Errors
    /// [`NoInformation`], which never means "no events".
    fn poll(&self) -> BoxFuture<'_, Result<Polled, NoInformation>>;

    /// Polls without delay for an approval: regular polls yield.
    ///
    /// # Errors
    /// [`NoInformation`], which never means "no events".
    fn look(&self) -> BoxFuture<'_, Result<Polled, NoInformation>>;

    /// Posts the approval of one event, once, or nothing if another request takes longer than `within`.
    fn approve<'a>(&'a self, event: &'a EventId, within: Duration) -> BoxFuture<'a, Approval>;
}

impl MetadataService for Endpoint {
    fn poll(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        Box::pin(self.poll())
    }

    fn look(&self) -> BoxFuture<'_, Result<Polled, NoInformation>> {
        Box::pin(self.look())
    }

    fn approve<'a>(&'a self, event: &'a EventId, within: Duration) -> BoxFuture<'a, Approval> {
        Box::pin(self.approve(event, within))
    }
}
