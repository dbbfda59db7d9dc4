//! Any stored value, so that one test covers all kinds.

use allclear::core::model::command::{ApplyResult, Command, Entry};
use allclear::core::model::isolated_approval::JournalEntry;
use allclear::core::model::state::State;
use allclear::wire::log::{self, Undecodable};

#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Record {
    Entry(Entry),
    Command(Command),
    Verdict(ApplyResult),
    State(State),
    Journal(Vec<JournalEntry>),
}

impl Record {
    pub(crate) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Entry(entry) => log::encode_entry(entry),
            Self::Command(command) => log::encode_command(command),
            Self::Verdict(verdict) => log::encode_verdict(verdict),
            Self::State(state) => log::encode_state(state),
            Self::Journal(entries) => log::encode_journal(entries),
        }
    }

    /// Decodes other bytes as the same kind of record.
    pub(crate) fn decode(&self, bytes: &[u8]) -> Result<Self, Undecodable> {
        match self {
            Self::Entry(_) => log::decode_entry(bytes).map(Self::Entry),
            Self::Command(_) => log::decode_command(bytes).map(Self::Command),
            Self::Verdict(_) => log::decode_verdict(bytes).map(Self::Verdict),
            Self::State(_) => log::decode_state(bytes).map(Self::State),
            Self::Journal(_) => log::decode_journal(bytes).map(Self::Journal),
        }
    }
}
