//! The connection of a call, for its handler.

use std::sync::Arc;

use tonic::Extensions;

use super::answer_budget::PeerReader;

/// Comes with each call, and is introduced before anybody else looks at it.
#[derive(Clone)]
pub struct Accepted {
    reader: PeerReader,
    introduce: Arc<dyn Fn(&mut Extensions) + Send + Sync>,
}

impl Accepted {
    pub(super) fn new<I: Clone + Send + Sync + 'static>(reader: PeerReader, of: I) -> Self {
        Self { reader, introduce: Arc::new(move |extensions| drop(extensions.insert(of.clone()))) }
    }

    /// From now on the call has what the system tells of its connection, and its reader. One that came in by another way
    /// reads alone.
    pub(super) fn introduced(extensions: &mut Extensions) -> PeerReader {
        let Some(guest) = extensions.remove::<Self>() else { return PeerReader::default() };
        (guest.introduce)(extensions);
        extensions.insert(guest.reader.clone());
        guest.reader
    }
}
