//! The last answers of the other replicas to a question about a node.

use std::time::Instant;

use tokio::sync::Mutex;

use super::types::Membership;

/// What one of the others said: its name, and the membership that its log holds.
pub(super) type Word = (String, Membership);

/// What the others said last, and when.
#[derive(Debug, Default)]
pub(super) struct Vouches(pub(super) Mutex<Option<(Instant, Vec<Word>)>>);
