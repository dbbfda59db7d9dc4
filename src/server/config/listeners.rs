//! `[status]`, `[operator]` and `[workloads]`: the listeners for people and workloads.

use core::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use super::reader::TomlTable;
use super::scalar;
use crate::http_client::Url;
use allclear_core::ownership::Grants;

/// `[status]`: the page, JSON and metrics over HTTP; read only.
#[derive(Clone, PartialEq, Debug)]
pub struct StatusConfig {
    pub listen: SocketAddr,
    /// Additional host names for requests, beside the addresses and the default names.
    pub host_names: Vec<String>,
    /// The address of the page for people, as notifications show it.
    pub url: Option<Url>,
}

impl StatusConfig {
    /// The address of the page for people, as text.
    pub fn page(&self) -> Option<String> {
        self.url.as_ref().map(ToString::to_string)
    }
}

/// The operator socket of a replica, unless configured otherwise.
pub const USUAL_SOCKET: &str = "/run/allclear/operator.sock";

/// `[operator]`: gRPC for operators.
#[derive(Clone, PartialEq, Debug)]
pub struct Operator {
    /// Mode 0600.
    pub socket: PathBuf,
}

/// `[workloads]`: gRPC where workloads register.
#[derive(Clone, PartialEq, Debug)]
pub struct Registration {
    /// Mode 0660. `None`: the default path, if usable.
    pub socket: Option<PathBuf>,
    /// Users that may register workloads outside of the groups and of the configuration, beside root and the replica's
    /// own user.
    pub allow_uids: Vec<u32>,
    /// Grants of `group.allow_uids` and `workload.allow_uids`.
    pub grants: Grants,
}

impl Registration {
    /// All users that may register any workload.
    pub fn uids(&self) -> Vec<u32> {
        self.allow_uids.iter().copied().chain(self.grants.uids()).collect()
    }

    pub fn path(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(|| PathBuf::from("/run/allclear/workloads.sock"))
    }
}

pub(super) fn read_status(table: &mut TomlTable<'_>) -> StatusConfig {
    let listen = table.or("listen", scalar::listen, SocketAddr::from((Ipv4Addr::LOCALHOST, 7421)));
    let host_names = table.list("host_names", scalar::host_name);
    let url = table.optional("url", scalar::url);
    StatusConfig { listen, host_names: host_names.into_iter().flatten().map(|name| name.value).collect(), url }
}

pub(super) fn read_operator(table: &mut TomlTable<'_>) -> Operator {
    Operator { socket: table.or("socket", scalar::socket, PathBuf::from(USUAL_SOCKET)) }
}

pub(super) fn read_registration(table: &mut TomlTable<'_>) -> Registration {
    let socket = table.optional("socket", scalar::socket);
    Registration { socket, allow_uids: read_uids(table), grants: Grants::default() }
}

/// Reads `allow_uids` of any table.
pub(super) fn read_uids(table: &mut TomlTable<'_>) -> Vec<u32> {
    let uids = table.list("allow_uids", scalar::number(0..=u32::MAX));
    let uids = uids.map(|uids| uids.into_iter().map(|uid| uid.value).collect());
    uids.unwrap_or_else(|| table.default("allow_uids", Vec::new()))
}
