//! Where one replica is reached: by the other replicas, by people, and by the workloads on its VM.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use tokio::net::{TcpListener, UnixListener};

use crate::config::{self, Config};
use crate::machine::id::VmName;
use crate::rpc::{self, Users};

pub(super) struct Listeners {
    pub(super) cluster: TcpListener,
    pub(super) status: TcpListener,
    pub(super) operator: UnixListener,
    pub(super) workloads: Option<(UnixListener, Users)>,
}

impl Listeners {
    pub(super) async fn bind(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            cluster: listen(config.cluster.listen, "cluster.listen").await?,
            status: listen(config.status.listen, "status.listen").await?,
            operator: rpc::bind(&config.operator.socket, 0o600)?,
            workloads: listen_for_workloads(&config.registration)?,
        })
    }

    pub(super) fn tell(&self, name: &VmName, cluster: &str) -> io::Result<()> {
        let (cluster_address, status_address) = (self.cluster.local_addr()?, self.status.local_addr()?);
        tracing::info!(replica = %name, cluster, %cluster_address, %status_address, "running");
        Ok(())
    }

    /// The sockets that are to be removed when nobody serves them any more.
    pub(super) fn paths(&self, config: &Config) -> Vec<PathBuf> {
        let workloads = self.workloads.as_ref().map(|_| config.registration.path());
        workloads.into_iter().chain([config.operator.socket.clone()]).collect()
    }
}

/// At the usual place only where that can be used: not everybody has workloads that dial in.
fn listen_for_workloads(registration: &config::Registration) -> anyhow::Result<Option<(UnixListener, Users)>> {
    let path = registration.path();
    let bound = rpc::bind(&path, 0o660).and_then(|listener| {
        let users = Users::of(&path, &registration.allow_uids);
        users.map(|users| (listener, users)).map_err(|source| rpc::SocketError::Io { path: path.clone(), source })
    });
    match bound {
        Ok(bound) => Ok(Some(bound)),
        Err(why) if registration.socket.is_none() => {
            tracing::warn!(%why, "no workload can dial in; set workloads.socket to a path of this replica's own");
            Ok(None)
        }
        Err(why) => Err(why).context("workloads.socket"),
    }
}

async fn listen(address: SocketAddr, key: &str) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| format!("{key}: cannot listen on {address}"))
}
