//! Start and shutdown of a fake cloud.

use std::collections::BTreeSet;
use std::fs::OpenOptions;
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::address::MOST_VMS;
use super::clock::Clock;
use super::exchange::exchange;
use super::fault::{FaultRule, On, Switched};
use super::listener::{ConnectionEnd, EmulatorListener, Wire};
use super::request_log::RequestLog;
use super::scenario::{CloudScenario, ScenarioError};
use super::server_state::ServerState;
use super::tenant::Tenant;
use super::{address, control, control_plane};
use allclear_core::model::id::VmName;
use allclear_server::net::limits::serve_http1;

/// Timeout of pending requests at the shutdown of the cloud.
const SHUTDOWN_LIMIT: Duration = Duration::from_secs(5);

/// Options of a fake cloud.
#[derive(Clone, Debug)]
pub struct Options {
    /// Loopback only. With port 0 all ports are free ports; else the VMs' ports follow this port in the order of the
    /// VMs.
    pub listen: SocketAddr,
    /// The VMs' names, in the order of positions in scenarios.
    pub vms: Vec<String>,
    /// The scenario that begins at once.
    pub scenario: Option<CloudScenario>,
    /// Factor by which durations in scenarios and orders become shorter; 1 is as written.
    pub speed: NonZeroU32,
    /// Every request as a line of JSON, added to this file.
    pub log: Option<PathBuf>,
}

impl Options {
    /// A quiet cloud with free ports on 127.0.0.1.
    pub fn new<S: Into<String>>(vms: impl IntoIterator<Item = S>) -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            vms: vms.into_iter().map(Into::into).collect(),
            scenario: None,
            speed: NonZeroU32::MIN,
            log: None,
        }
    }
}

/// Why a fake cloud cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the fake cloud listens on loopback only, so {0} is refused; use 127.0.0.1:PORT or [::1]:PORT")]
    NotLoopback(SocketAddr),
    #[error("a fake cloud has 1 to {MOST_VMS} VMs, not {count}; name them with --vms a,b,c")]
    VmCount { count: usize },
    #[error("\"{0}\" cannot be the name of a VM; use up to 64 letters, digits, and - _ .")]
    VmName(String),
    #[error("the VM {0} is named twice (case and one leading underscore do not count); name each VM once")]
    VmTwice(String),
    #[error("there is no port for the VM {0} after {1}; use a lower port, or port 0")]
    NoPort(String, SocketAddr),
    #[error("cannot listen on {address} for {what}: {source}; choose another port, or port 0 for any free port")]
    Listen { address: SocketAddr, what: String, source: io::Error },
    #[error("cannot write the request log {}: {source}; choose another file", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

/// A running fake cloud. On drop, the cloud stops at once.
#[derive(Debug)]
pub struct Running {
    /// Address of the control interface.
    pub address: SocketAddr,
    pub(super) house: Arc<ServerState>,
    doors: JoinSet<io::Result<()>>,
}

impl Running {
    /// The value of `metadata.endpoint` for the replica beside this VM: the VM's own port.
    pub fn endpoint(&self, vm: &str) -> Option<String> {
        let name = VmName::new(vm);
        self.house.ports.iter().find(|(candidate, _)| *candidate == name).map(|(_, endpoint)| endpoint.clone())
    }

    /// The control plane of this cloud.
    pub fn control_plane(&self) -> String {
        format!("http://{}", self.address)
    }

    /// `http://…/control`.
    pub fn control(&self) -> String {
        format!("http://{}/control", self.address)
    }

    /// Begins a scenario now, which replaces the current scenario.
    pub fn play(&self, scenario: &CloudScenario) -> Result<(), ScenarioError> {
        self.house.tenant().play(scenario, self.house.now())
    }

    /// Whether all events of the scenario are over; false without a scenario.
    pub fn is_over(&self) -> bool {
        let mut tenant = self.house.tenant();
        tenant.cloud.advance(self.house.now());
        tenant.is_over()
    }

    /// Delays the answers to this VM's polls by `by` from now on, without another fault; `None` where the VM does not
    /// exist.
    pub fn slow_down(&self, vm: &str, by: Duration) -> Option<()> {
        let mut tenant = self.house.tenant();
        let faults = tenant.faults.get_mut(&VmName::new(vm))?;
        let ms = u64::try_from(by.as_millis()).unwrap_or(u64::MAX);
        *faults = vec![Switched { fault: FaultRule::Slow { ms }, on: On::Get, times: None, stale: None }];
        Some(())
    }

    /// Waits for the end of the cloud, which ends by itself only when its ports fail.
    pub async fn wait(&mut self) {
        while self.doors.join_next().await.is_some() {}
    }

    /// Ends requests under way, and closes all ports.
    pub async fn shutdown(mut self) {
        self.house.stop.cancel();
        if tokio::time::timeout(SHUTDOWN_LIMIT, self.wait()).await.is_err() {
            self.doors.shutdown().await;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.house.stop.cancel();
    }
}

/// Opens all ports and answers from then on. Needs a tokio runtime.
pub async fn serve(options: Options) -> Result<Running, ServeError> {
    let Options { listen, vms, scenario, speed, log } = options;
    let vms = checked(listen, &vms)?;
    let file = match log {
        None => None,
        Some(path) => {
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            Some(opened.map_err(|source| ServeError::Log { path, source })?)
        }
    };
    let clock = Clock::begin();
    let mut tenant = Tenant::new(vms, speed, RequestLog::new(file), clock.now());
    let (main, address) = open(listen, "the control interface").await?;
    let (mut gates, mut ports) = (Vec::new(), Vec::new());
    for (position, vm) in tenant.vms.iter().enumerate() {
        let address = address::of_vm(listen, position).ok_or_else(|| ServeError::NoPort(vm.to_string(), listen))?;
        let (gate, address) = open(address, &format!("the VM {vm}")).await?;
        gates.push((vm.clone(), gate));
        ports.push((vm.clone(), format!("http://{address}")));
    }
    if let Some(scenario) = scenario {
        tenant.play(&scenario, clock.now())?;
    }
    let house = Arc::new(ServerState { tenant: Mutex::new(tenant), clock, stop: CancellationToken::new(), ports });
    let mut doors = JoinSet::new();
    let control = Router::new()
        .nest("/control", control::router())
        .route("/subscriptions/{*path}", post(control_plane::acknowledge))
        .with_state(Arc::clone(&house));
    doors.spawn(answer_at(main, control, Arc::clone(&house)));
    for (vm, gate) in gates {
        doors.spawn(answer_at(gate, of_one(&house, vm), Arc::clone(&house)));
    }
    Ok(Running { address, house, doors })
}

fn checked(listen: SocketAddr, vms: &[String]) -> Result<Vec<VmName>, ServeError> {
    if !address::is_allowed(listen) {
        return Err(ServeError::NotLoopback(listen));
    }
    if vms.is_empty() || vms.len() > MOST_VMS {
        return Err(ServeError::VmCount { count: vms.len() });
    }
    if let Some(name) = vms.iter().find(|name| !address::is_vm_name(name)) {
        return Err(ServeError::VmName(name.clone()));
    }
    let mut seen = BTreeSet::new();
    let names: Vec<VmName> = vms.iter().map(|name| VmName::new(name)).collect();
    match names.iter().find(|name| !seen.insert(*name)) {
        Some(twice) => Err(ServeError::VmTwice(twice.to_string())),
        None => Ok(names),
    }
}

async fn open(address: SocketAddr, what: &str) -> Result<(EmulatorListener, SocketAddr), ServeError> {
    let opened = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((EmulatorListener(listener), address))
    };
    opened.await.map_err(|source| ServeError::Listen { address, what: what.to_owned(), source })
}

async fn answer_at(gate: EmulatorListener, router: Router, house: Arc<ServerState>) -> io::Result<()> {
    serve_http1(gate, router, |wire: &Wire, _| wire.line.clone(), house.stop.clone()).await
}

/// The router of a VM's own port.
fn of_one(house: &Arc<ServerState>, vm: VmName) -> Router {
    let answer = |State((house, vm)): State<(Arc<ServerState>, VmName)>,
                  ConnectInfo(line): ConnectInfo<ConnectionEnd>,
                  request: Request| { exchange(house, vm, line, request) };
    Router::new().fallback(answer).with_state((Arc::clone(house), vm))
}
