//! Stored bytes of the log and of snapshots (`allclear.log.v1`).
//!
//! A message is decoded completely or rejected: a part ignored by an older program would make the state of this
//! replica differ from all other replicas. Every value of the core can be stored, and is read back unchanged.

mod attempt;
mod claim;
mod command;
mod document;
mod event;
mod id;
mod isolated_approval;
mod notification;
mod operator;
mod state;
mod stored;
mod tables;
mod treatment;
mod undecodable;
mod verdict;
mod workload;

use prost::Message;

use self::stored::{Stored, required, restored};
pub use self::undecodable::{DecodeFault, Undecodable};
use super::pb::allclear::log::v1 as pb;
use allclear_core::model::command::{ApplyResult, Command, Entry};
use allclear_core::model::isolated_approval::JournalEntry;
use allclear_core::model::state::State;

pub fn encode_entry(entry: &Entry) -> Vec<u8> {
    entry.store().encode_to_vec()
}

pub fn decode_entry(bytes: &[u8]) -> Result<Entry, Undecodable> {
    decode("entry", bytes, Entry::restore)
}

/// Encodes a proposal: a command without a leader's time stamp.
pub fn encode_command(command: &Command) -> Vec<u8> {
    command.store().encode_to_vec()
}

pub fn decode_command(bytes: &[u8]) -> Result<Command, Undecodable> {
    decode("command", bytes, Command::restore)
}

pub fn encode_verdict(verdict: &ApplyResult) -> Vec<u8> {
    verdict.store().encode_to_vec()
}

pub fn decode_verdict(bytes: &[u8]) -> Result<ApplyResult, Undecodable> {
    decode("verdict", bytes, ApplyResult::restore)
}

/// The content of a snapshot.
pub fn encode_state(state: &State) -> Vec<u8> {
    pb::Snapshot { state: Some(state.store()) }.encode_to_vec()
}

pub fn decode_state(bytes: &[u8]) -> Result<State, Undecodable> {
    decode("snapshot", bytes, |snapshot: pb::Snapshot| required(snapshot.state, "state"))
}

/// The content of a replica's journal.
pub fn encode_journal(entries: &[JournalEntry]) -> Vec<u8> {
    let journal = pb::Journal { entries: entries.iter().map(JournalEntry::store).collect() };
    pb::JournalFile { journal: Some(journal) }.encode_to_vec()
}

pub fn decode_journal(bytes: &[u8]) -> Result<Vec<JournalEntry>, Undecodable> {
    decode("journal", bytes, |file: pb::JournalFile| {
        restored(file.journal.ok_or(DecodeFault::Missing)?.entries, "entries")
    })
}

fn decode<M: Message + Default, T>(
    what: &'static str,
    bytes: &[u8],
    restore: impl FnOnce(M) -> Result<T, Undecodable>,
) -> Result<T, Undecodable> {
    let message = M::decode(bytes).map_err(|damage| Undecodable::from(DecodeFault::Damaged(damage)).within(what))?;
    // Unknown fields are dropped by the generated code during decoding, and missing in the encoded length.
    let is_whole = message.encoded_len() == bytes.len();
    let value = restore(message).map_err(|undecodable| undecodable.within(what))?;
    if is_whole { Ok(value) } else { Err(Undecodable::from(DecodeFault::UnknownFields).within(what)) }
}
