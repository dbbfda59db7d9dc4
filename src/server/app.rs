//! Wires the modules into one running replica. Only this module knows all others.

pub mod confidence;
pub mod credentials;
pub mod doubts;
pub mod hook_commands;
mod identity;
mod listening;
mod questions;
mod serving;
mod settings;
mod systemd;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use self::identity::Misconfigured;
use self::identity::{endpoint, members, own_name};
use self::listening::Listeners;
use self::serving::{Serving, serve};
use crate::config::{self, Config};
use crate::consensus::{self, Consensus};
use crate::control_plane::ControlPlane;
use crate::export::{notices, traces};
use crate::hooks::command::FORMER_HOOKS;
use crate::hooks::session::Sessions;
use crate::hooks::{HookRunner, Runner};
use crate::imds::Endpoint;
use crate::imds::poll_schedule::PollSchedule;
use crate::replica::clock::{self, ClusterClock};
use crate::replica::cluster::ClusterHandle;
use crate::replica::hook_executor::{Former, HookExecutor, KnownCalls};
use crate::replica::input_source::InputSource;
use crate::replica::journal::ApprovalJournal;
use crate::replica::metrics::Metrics;
use crate::replica::poller::ImdsPoller;
use crate::replica::state_machine::CoreStateMachine;
use crate::replica::view::View;
use crate::replica::watchdog::Watchdog;
use crate::replica::{ReplicaTasks, SharedParts, Startup};
use allclear_core::leadership;
use allclear_core::model::id::VmName;
use allclear_core::model::version::VERSION;
use allclear_core::model::workload::Workload;
use allclear_core::observation::Patience;

/// The time limit of the shutdown after SIGTERM; unfinished work is recovered at the next start.
const STOP_WITHIN: Duration = Duration::from_secs(4);
/// The time limit for clients to disconnect.
const CLIENTS_LEAVE_WITHIN: Duration = Duration::from_millis(500);
/// Supervises hooks as `allclear supervise FOLDER`; stays right when an upgrade replaces the file.
const OWN_PROGRAM: &str = "/proc/self/exe";

/// Runs one replica until SIGTERM or SIGINT, or until the replica can no longer keep its promises. Clients other than
/// replicas are served on `answering`, so that no number of clients keeps the caller's runtime from its part in the
/// cluster.
pub async fn run(config: Config, answering: Handle) -> anyhow::Result<()> {
    let stop = CancellationToken::new();
    let signals = tokio::spawn(stop_at_signal(stop.clone())?);
    let result = run_until(config, VERSION, stop, &answering).await;
    signals.abort();
    result
}

fn stop_at_signal(stop: CancellationToken) -> io::Result<impl Future<Output = ()> + Send> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("stopping at SIGTERM"),
            _ = interrupt.recv() => tracing::info!("stopping at SIGINT"),
        }
        stop.cancel();
    })
}

/// Runs one replica until `stop`, as a program with this cluster version.
pub async fn run_until(
    config: Config,
    version: u64,
    stop: CancellationToken,
    answering: &Handle,
) -> anyhow::Result<()> {
    let endpoint = Arc::new(endpoint(&config.metadata)?);
    let Some(name) = stop.run_until_cancelled(name(&config, &endpoint)).await else {
        return Ok(());
    };
    let members = members(&config.cluster, &name)?;
    let options = settings::consensus_options(&config, &name, &members)?;
    let tls = options.tls.clone();
    let listeners = Listeners::bind(&config, answering).await?;
    let time = Arc::new(ClusterClock::default());
    let (state_machine, committed) = CoreStateMachine::new(time.clone(), version);
    let (consensus, routes) = Consensus::open(options, state_machine).await?;
    // Not earlier: opening the consensus has just checked the owner of the data.
    let spool = config.replica.data_dir.join("hooks");
    let (commands, of_commands) = Runner::open(&spool, PathBuf::from(OWN_PROGRAM), hook_commands::surroundings())?;
    let (sessions, of_sessions) = Sessions::open(Arc::new(clock::now));
    let metrics = Arc::new(Metrics::new()?);
    let journal = ApprovalJournal::open(&config.replica.data_dir, consensus::Environment::default())?;
    let node = settings::node_facts(&config, &name, &members);
    let shared =
        SharedParts::new(ClusterHandle { node, consensus, committed, time }, journal, metrics.clone(), version);
    let (cluster, inputs) = (shared.inputs.cluster.clone(), shared.inputs.clone());
    let observer = Arc::new(observer(&config, endpoint.clone(), metrics.clone()).await?);
    let calls = known_calls(&config, &spool)?;
    let runner = HookRunner::new(commands, sessions);
    let hooks = Arc::new(HookExecutor::new(runner, calls, config.tracing.is_some(), inputs, metrics.clone()));
    let configured: Vec<Workload> = config.workloads.iter().map(config::ConfiguredWorkload::registered).collect();
    let questions = questions::all(&config, &name);
    let view = View::new(&shared);
    listeners.tell(&name, &config.cluster.name)?;

    let sockets = listeners.paths(&config);
    // Not `stop`: a post in progress still has to be confirmed and recorded.
    let serving = CancellationToken::new();
    let naming = identity::watch_name(name.clone(), endpoint.clone(), metrics.clone(), serving.clone());
    let answers = Serving {
        config: &config,
        tls,
        shared: &shared,
        observer: &observer,
        hooks: &hooks,
        view: &view,
        stop: &serving,
        answering,
    };
    let servers = serve(answers, listeners, routes);
    servers.spawn(naming);
    servers.spawn(telling(&config, &shared, &view, &serving));
    if let Some(collector) = config.tracing.clone() {
        servers.spawn(traces::export(cluster.clone(), metrics, collector, serving.clone()));
    }
    let reports = [of_commands, of_sessions];
    let startup = Startup { workloads: configured, groups: config.groups.clone(), questions, reports };
    let replica = ReplicaTasks::start(shared.clone(), &observer, &hooks, startup);

    let failure = until_over(&cluster, &shared.watchdog, &stop).await;
    if tokio::time::timeout(STOP_WITHIN, end(replica, &shared.inputs, &serving, &servers)).await.is_err() {
        tracing::warn!("tasks not ended in time; the next start recovers them");
    }
    remove(&sockets);
    match failure {
        Some(fatal) => bail!("this replica cannot continue: {fatal}"),
        None => Ok(()),
    }
}

/// The task that sends notifications.
fn telling(
    config: &Config,
    shared: &SharedParts,
    view: &View,
    stop: &CancellationToken,
) -> impl Future<Output = ()> + use<> {
    let (receivers, page) = (config.receivers.clone(), config.status.page());
    notices::tell(shared.clone(), view.clone(), receivers, page, stop.clone())
}

async fn name(config: &Config, endpoint: &Endpoint) -> VmName {
    match &config.replica.name {
        Some(name) => name.clone(),
        None => own_name(endpoint).await,
    }
}

async fn observer(config: &Config, endpoint: Arc<Endpoint>, metrics: Arc<Metrics>) -> anyhow::Result<ImdsPoller> {
    let config::Metadata { poll_interval, gone_after, stale_after, stall_after, .. } = config.metadata;
    let patience = Patience { poll_interval, gone_after, stale_after };
    let observer = ImdsPoller::new(endpoint.clone(), PollSchedule::new(poll_interval), patience, stall_after, metrics);
    let Some(options) = config.control_plane.clone() else { return Ok(observer) };
    let control_plane = ControlPlane::new(options, endpoint).await;
    let control_plane = control_plane.map_err(|why| anyhow!("[control_plane] cannot be used: {why}"))?;
    Ok(observer.with_control_plane(control_plane))
}

/// The reason why this replica cannot continue; `None` for a stop.
async fn until_over(cluster: &ClusterHandle, watchdog: &Watchdog, stop: &CancellationToken) -> Option<String> {
    let failure = tokio::select! {
        fatal = cluster.consensus.fatal() => Some(fatal),
        () = stop.cancelled() => None,
        () = systemd::keep_told(|| watchdog.stalled_loop()) => None,
    };
    systemd::tell_of_the_end();
    failure
}

async fn end(replica: ReplicaTasks, inputs: &InputSource, serving: &CancellationToken, servers: &TaskTracker) {
    let cluster = &inputs.cluster;
    replica.stop().await;
    hand_over(inputs).await;
    cluster.consensus.sign_off().await;
    serving.cancel();
    cluster.consensus.shutdown().await;
    // Clients with open connections are waited for only this long.
    let _ = tokio::time::timeout(CLIENTS_LEAVE_WITHIN, servers.wait()).await;
}

/// Transfers leadership before a deliberate stop, which spares the cluster an election.
async fn hand_over(inputs: &InputSource) {
    let cluster = &inputs.cluster;
    if !cluster.leads() {
        return;
    }
    if let Some(successor) = leadership::successor(&inputs.planning_input())
        && let Err(error) = cluster.consensus.transfer_leadership(successor.as_str()).await
    {
        tracing::info!(%error, "leadership not transferred");
    }
}

fn remove(sockets: &[PathBuf]) {
    for socket in sockets {
        let _ = std::fs::remove_file(socket);
    }
}

fn known_calls(config: &Config, spool: &Path) -> anyhow::Result<KnownCalls> {
    let configured = hook_commands::of(config);
    let former = Former::open(spool, &configured).with_context(|| {
        let file = spool.join(FORMER_HOOKS);
        format!(
            "cannot read or write {}, the record of hooks of former configurations; repair the disk or the \
             permissions, or move the file away when `allclear workload list` on another replica shows no outstanding \
             restore for this VM",
            file.display()
        )
    })?;
    Ok(KnownCalls { configured, former })
}
