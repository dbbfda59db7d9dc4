//! The last answers of the other replicas to a question about a node.

use std::time::Instant;

use tokio::sync::Mutex;

use super::types::Membership;

/// The answer of another replica: its name, and the membership in its log.
pub(super) type Word = (String, Membership);

/// The last answers of the other replicas, and their time.
#[derive(Debug, Default)]
pub(super) struct Vouches(pub(super) Mutex<Option<(Instant, Vec<Word>)>>);
