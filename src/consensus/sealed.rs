//! Values as they lie in the tables: each under a seal with its key, so that none is read that changed on the disk or
//! stands where another one belongs.

use redb::{Error, Table};

use crate::wire::seal;

pub(super) fn put(table: &mut Table<&str, &[u8]>, key: &str, message: Vec<u8>) -> Result<(), Error> {
    table.insert(key, seal::seal(key.as_bytes(), message).as_slice())?;
    Ok(())
}

pub(super) fn put_entry(table: &mut Table<u64, &[u8]>, index: u64, message: Vec<u8>) -> Result<(), Error> {
    table.insert(index, seal::seal(&index.to_le_bytes(), message).as_slice())?;
    Ok(())
}

pub(super) fn value<'b>(key: &str, sealed: &'b [u8]) -> Result<&'b [u8], Error> {
    seal::unseal(key.as_bytes(), sealed).map_err(|changed| Error::Corrupted(format!("{key}: {changed}")))
}

pub(super) fn entry(index: u64, sealed: &[u8]) -> Result<&[u8], Error> {
    let opened = seal::unseal(&index.to_le_bytes(), sealed);
    opened.map_err(|changed| Error::Corrupted(format!("log entry {index}: {changed}")))
}
