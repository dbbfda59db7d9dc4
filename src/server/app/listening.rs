//! The listeners of one replica: for other replicas, for people, and for workloads on this VM.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::Context as _;
use tokio::net::{TcpListener, UnixListener};
use tokio::runtime::Handle;
use tracing::field;

use crate::config::{self, Config};
use crate::grpc;
use crate::http::host::HostNames;
use allclear_core::model::id::VmName;

pub(super) struct Listeners {
    /// `None` in a replica without `cluster.listen`.
    pub(super) cluster: Option<TcpListener>,
    pub(super) status: TcpListener,
    /// The same port at the loopback address of the other IP version: `localhost` may be either.
    pub(super) status_other: Option<TcpListener>,
    pub(super) operator: UnixListener,
    pub(super) workloads: Option<UnixListener>,
}

impl Listeners {
    /// Binds the listeners. All except the cluster's are bound on the runtime `answering`, so their wakeups happen
    /// there.
    pub(super) async fn bind(config: &Config, answering: &Handle) -> anyhow::Result<Self> {
        let (operator, registration) = (config.operator.socket.clone(), config.registration.clone());
        let status = answering.spawn(listen(config.status.listen, "status.listen")).await??;
        let other = loopback_of_other_version(status.local_addr()?);
        Ok(Self {
            cluster: match config.cluster.listen {
                Some(address) => Some(listen(address, "cluster.listen").await?),
                None => None,
            },
            status,
            status_other: answering.spawn(async move { TcpListener::bind(other?).await.ok() }).await?,
            operator: answering.spawn(async move { grpc::bind(&operator, 0o600).await }).await??,
            workloads: answering.spawn(async move { listen_for_workloads(&registration).await }).await??,
        })
    }

    pub(super) fn tell(&self, name: &VmName, cluster: &str) -> io::Result<()> {
        let cluster_address = self.cluster.as_ref().map(TcpListener::local_addr).transpose()?.map(field::display);
        let status_address = field::display(self.status.local_addr()?);
        // Missing where another program has the port.
        let other_status_address =
            self.status_other.as_ref().map(TcpListener::local_addr).transpose()?.map(field::display);
        tracing::info!(replica = %name, cluster, cluster_address, status_address, other_status_address, "replica started");
        Ok(())
    }

    /// The socket files to remove when this replica stops serving.
    pub(super) fn paths(&self, config: &Config) -> Vec<PathBuf> {
        let workloads = self.workloads.as_ref().map(|_| config.registration.path());
        workloads.into_iter().chain([config.operator.socket.clone()]).collect()
    }
}

/// Listens for session workloads. A failure at the default path only disables sessions, since not every replica has
/// session workloads.
async fn listen_for_workloads(registration: &config::Registration) -> anyhow::Result<Option<UnixListener>> {
    match grpc::bind(&registration.path(), 0o660).await {
        Ok(listener) => Ok(Some(listener)),
        Err(why) if registration.socket.is_none() => {
            tracing::warn!(%why, "sessions of workloads disabled; set workloads.socket to a path that belongs to this replica");
            Ok(None)
        }
        Err(why) => Err(why).context("workloads.socket"),
    }
}

async fn listen(address: SocketAddr, key: &'static str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{key}: cannot listen on {address}"))
}

/// `None` for other addresses. A machine may have only one version, or another program at this port: that is no failure.
fn loopback_of_other_version(address: SocketAddr) -> Option<SocketAddr> {
    const FIRST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const SECOND: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);
    match address.ip() {
        FIRST => Some(SocketAddr::new(SECOND, address.port())),
        SECOND => Some(SocketAddr::new(FIRST, address.port())),
        _ => None,
    }
}

/// Host names that a status request may use for this machine: the configured names, and the machine's own.
pub(super) fn host_names(config: &Config, name: &VmName) -> HostNames {
    let own = config.cluster.replicas.iter().find(|peer| peer.name == *name);
    let address = own.and_then(|peer| peer.address.rsplit_once(':')).map(|(host, _)| host.to_owned());
    let machine = std::fs::read_to_string("/proc/sys/kernel/hostname").ok().map(|name| name.trim().to_owned());
    let known = address.into_iter().chain(machine).chain([name.to_string()]);
    HostNames::new(known.chain(config.status.host_names.iter().cloned()))
}
