//! `[cluster.tls]`: the certificates of this replica.

use core::time::Duration;
use std::path::PathBuf;

use super::reader::TomlTable;
use super::scalar;
use crate::net::tls::NamedBy;

/// Files in PEM, which are read again when they change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tls {
    /// This replica's certificate, with the intermediate certificates up to the authority.
    pub cert: PathBuf,
    pub key: PathBuf,
    /// The authorities whose certificates are accepted.
    pub ca: PathBuf,
    pub names: NamedBy,
    /// A connection is closed at this age, and opened again under the current certificates.
    pub max_connection_age: Duration,
}

pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Tls> {
    let cert = table.required("cert", scalar::path, "the file of this replica's certificate, in PEM");
    let key = table.required_secret_file("key", "the file of its private key, in PEM");
    let ca = table.required("ca", scalar::path, "the file of the cluster's authority, in PEM");
    let names = table.or("names", scalar::word(NamedBy::NAMES, NamedBy::parse), NamedBy::Uri);
    let age = scalar::duration(Duration::from_secs(1)..=Duration::from_hours(24));
    let max_connection_age = table.or("max_connection_age", age, Duration::from_mins(5));
    Some(Tls { cert: cert?.value, key: key?, ca: ca?.value, names, max_connection_age })
}
