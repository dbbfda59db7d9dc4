//! The connection of a call, for its handler.

use std::sync::Arc;

use tonic::Extensions;

use super::answer_budget::PeerReader;

/// The connection of a call, introduced before any other use of the call.
#[derive(Clone)]
pub struct Accepted {
    reader: PeerReader,
    introduce: Arc<dyn Fn(&mut Extensions) + Send + Sync>,
}

impl Accepted {
    pub(super) fn new<I: Clone + Send + Sync + 'static>(reader: PeerReader, of: I) -> Self {
        Self { reader, introduce: Arc::new(move |extensions| drop(extensions.insert(of.clone()))) }
    }

    /// Adds the connection's system information and its reader to the call. A call from another transport gets a reader
    /// of its own.
    pub(super) fn introduced(extensions: &mut Extensions) -> PeerReader {
        let Some(guest) = extensions.remove::<Self>() else { return PeerReader::default() };
        (guest.introduce)(extensions);
        extensions.insert(guest.reader.clone());
        guest.reader
    }
}
