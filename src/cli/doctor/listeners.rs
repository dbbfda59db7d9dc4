//! Whether the ports and sockets can be had, or are held by this very replica already.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::unix::fs::FileTypeExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;

use nix::unistd::{AccessFlags, access};
use serde_json::Value;
use tokio::time::timeout;

use super::disk::to_be_made;
use super::finding::{Finding, Severity};
use super::peers::ANSWER_WITHIN;
use allclear_core::model::id::VmName;
use allclear_server::config::Config;
use allclear_server::grpc::{Prober, visit};
use allclear_server::http_client;
use allclear_wire::pb::allclear::operator::v1 as shown;

const PORT: &str = "port";
const SOCKET: &str = "socket";
/// Maximum length of an answer, more than any status of a replica.
const LONGEST: usize = 16 << 20;

pub(super) async fn findings(
    config: &Config,
    visitor: Option<&Prober<'_>>,
    name: &str,
    running: Option<&shown::Status>,
) -> Vec<Finding> {
    let is_ours = async |cluster: SocketAddr| match visitor {
        Some(visitor) => match visit(visitor, name, &at(cluster).to_string(), ANSWER_WITHIN).await {
            Ok(met) => VmName::new(&met.replica) == VmName::new(name),
            Err(_) => false,
        },
        // Without a certificate no replica answers, not even this replica.
        None => running.is_some(),
    };
    let status = config.status.listen;
    let is_ours_too = async || {
        let answered = timeout(ANSWER_WITHIN, status_at(at(status))).await.ok().flatten();
        answered.is_some_and(|told| {
            let is_replica = told["replica"].as_str().is_some_and(|it| VmName::new(it) == VmName::new(name));
            is_replica && told["cluster"].as_str().is_some_and(|it| it.eq_ignore_ascii_case(&config.cluster.name))
        })
    };
    let mut findings = Vec::new();
    if let Some(cluster) = config.cluster.listen {
        findings.push(port("cluster.listen", cluster, async || is_ours(cluster).await).await);
    }
    findings.push(port("status.listen", status, is_ours_too).await);
    let is_own = running.is_some_and(|status| status.cluster == config.cluster.name);
    findings.push(socket("operator.socket", &config.operator.socket, is_own));
    findings.push(of_workloads(config, is_own));
    findings
}

async fn port(key: &str, address: SocketAddr, is_ours: impl AsyncFnOnce() -> bool) -> Finding {
    match TcpListener::bind(address) {
        Ok(_) => Finding::ok(PORT, format!("{key} {address} is free")),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
            if is_ours().await {
                return Finding::ok(PORT, format!("{key} {address} is held by this replica, which runs"));
            }
            let (what, port) = (format!("{key} {address} is held by another process"), address.port());
            Finding::fail(
                PORT,
                what,
                format!("stop that process (`ss -ltnp 'sport = :{port}'` names it), or change {key}"),
            )
        }
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            let what = format!("{key} {address}: this machine does not have that address");
            Finding::fail(PORT, what, format!("correct {key}: `ip address` lists the machine's addresses"))
        }
        Err(error) => {
            Finding::fail(PORT, format!("{key} {address} cannot be listened on: {error}"), format!("correct {key}"))
        }
    }
}

/// The listener's address as reachable from this machine.
fn at(listens: SocketAddr) -> SocketAddr {
    let ip = match listens.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listens.port())
}

/// The answer at this address, if the answer has the form of a replica's status.
async fn status_at(address: SocketAddr) -> Option<Value> {
    let client = http_client::plain().ok()?.build().ok()?;
    let mut answer = client.get(format!("http://{address}/v1/status")).send().await.ok()?;
    serde_json::from_slice(&http_client::read_body(&mut answer, LONGEST).await.ok()??).ok()
}

fn socket(key: &str, path: &Path, is_own: bool) -> Finding {
    let shown = path.display();
    match UnixStream::connect(path) {
        Ok(_) if is_own => Finding::ok(SOCKET, format!("{key} {shown} is served by this replica, which runs")),
        Ok(_) => {
            let what = format!("{key} {shown} is served by another process");
            Finding::fail(SOCKET, what, format!("stop that process, or change {key}"))
        }
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let what = format!("{key} {shown} belongs to another user: {error}");
            Finding::fail(SOCKET, what, "run doctor as the replica's user")
        }
        Err(_) => left(key, path),
    }
}

/// A socket without a server: a missing file, or a file left over from an ended replica.
fn left(key: &str, path: &Path) -> Finding {
    let shown = path.display();
    match std::fs::symlink_metadata(path) {
        Ok(found) if !found.file_type().is_socket() => {
            let what = format!("{key} {shown} exists and is no socket");
            Finding::fail(SOCKET, what, format!("remove the file, or change {key}"))
        }
        found => {
            let Some(folder) = path.parent().filter(|folder| folder.is_dir()) else {
                return to_be_made(SOCKET, path, key);
            };
            if let Err(error) = access(folder, AccessFlags::W_OK | AccessFlags::X_OK) {
                let what = format!("{key} {shown} cannot be made in {}: {}", folder.display(), error.desc());
                return Finding::fail(SOCKET, what, format!("run doctor as the replica's user, or change {key}"));
            }
            let left = if found.is_ok() { "was left behind by an earlier run, and is replaced" } else { "is free" };
            Finding::ok(SOCKET, format!("{key} {shown} {left}"))
        }
    }
}

/// An unusable default path is no failure, because the replica runs without the default socket.
fn of_workloads(config: &Config, is_own: bool) -> Finding {
    let finding = socket("workloads.socket", &config.registration.path(), is_own);
    if config.registration.socket.is_none() && finding.verdict == Severity::Fail {
        let advice = "only session workloads need the socket: set workloads.socket to a path for this replica alone";
        return Finding::warn(SOCKET, finding.what, advice);
    }
    finding
}
