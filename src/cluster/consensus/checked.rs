//! Stored values with checksums. The checksum covers the value and its key, so that a value changed on the disk, or
//! stored at another key, is not read.

use prost::Message;
use redb::{Error, ReadableTable, Table};

use super::codec;
use super::types::RaftEntry;
use allclear_wire::checksum;

pub(super) fn put(table: &mut Table<&str, &[u8]>, key: &str, message: &impl Message) -> Result<(), Error> {
    table.insert(key, checksum::append_checksum(key.as_bytes(), message.encode_to_vec()).as_slice())?;
    Ok(())
}

pub(super) fn get<M: Message + Default>(
    table: &impl ReadableTable<&'static str, &'static [u8]>,
    key: &str,
) -> Result<Option<M>, Error> {
    let Some(sealed) = table.get(key)? else { return Ok(None) };
    let message = M::decode(value(key, sealed.value())?);
    message.map(Some).map_err(|why| Error::Corrupted(format!("{key}: {why}")))
}

pub(super) fn value<'b>(key: &str, sealed: &'b [u8]) -> Result<&'b [u8], Error> {
    checksum::verify_checksum(key.as_bytes(), sealed).map_err(|changed| Error::Corrupted(format!("{key}: {changed}")))
}

/// Stores an entry; returns its index and its size in bytes.
pub(super) fn put_entry(table: &mut Table<u64, &[u8]>, entry: &RaftEntry) -> Result<(u64, usize), Error> {
    let (index, message) = (entry.log_id.index(), codec::pb_entry(entry).encode_to_vec());
    let sealed = checksum::append_checksum(&index.to_le_bytes(), message);
    table.insert(index, sealed.as_slice())?;
    Ok((index, sealed.len()))
}

pub(super) fn entry(index: u64, sealed: &[u8]) -> Result<&[u8], Error> {
    let opened = checksum::verify_checksum(&index.to_le_bytes(), sealed);
    opened.map_err(|changed| Error::Corrupted(format!("log entry {index}: {changed}")))
}
