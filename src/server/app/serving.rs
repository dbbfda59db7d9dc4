//! Serves the other replicas, workloads and operators.

use std::sync::Arc;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listening::{self, Listeners};
use crate::config::Config;
use crate::consensus;
use crate::grpc::{self, Routes, UidPolicy};
use crate::http;
use crate::net::tls::Credentials;
use crate::replica::SharedParts;
use crate::replica::hook_executor::HookExecutor;
use crate::replica::poller::ImdsPoller;
use crate::replica::view::View;
use allclear_wire::pb::allclear::cluster::v1::{consensus_server, contact_server};
use allclear_wire::pb::allclear::operator::v1::operator_server;
use allclear_wire::pb::allclear::raft::v1::raft_server;
use allclear_wire::pb::allclear::workload::v1::workloads_server;

/// The parts that the servers of one replica share.
pub(super) struct Serving<'a> {
    pub(super) config: &'a Config,
    pub(super) tls: Option<Arc<Credentials>>,
    pub(super) shared: &'a SharedParts,
    pub(super) observer: &'a Arc<ImdsPoller>,
    pub(super) hooks: &'a Arc<HookExecutor>,
    pub(super) view: &'a View,
    pub(super) stop: &'a CancellationToken,
    pub(super) answering: &'a Handle,
}

/// Serves the other replicas, workloads and operators, and sends status reports, until `stop`.
pub(super) fn serve(
    Serving { config, tls, shared, observer, hooks, view, stop, answering }: Serving<'_>,
    listeners: Listeners,
    routes: Routes,
) -> TaskTracker {
    let servers = TaskTracker::new();
    let SharedParts { inputs, metrics, watchdog, .. } = shared;
    let cluster = &inputs.cluster;
    // Tasks started by the routes themselves run on `answering` as well.
    let entered = answering.enter();
    let for_operators = grpc::operator_routes(view.clone(), shared, hooks.clone(), stop.clone());
    let for_workloads = grpc::workload_routes(shared, hooks.clone(), view.clone(), stop.clone());
    drop(entered);
    let contact = grpc::contact_service(inputs.clone(), observer.clone());
    let between_replicas = grpc::with_health_and_reflection(
        routes.add_service(contact),
        &[raft_server::SERVICE_NAME, consensus_server::SERVICE_NAME, contact_server::SERVICE_NAME],
    );
    if let Some(listener) = listeners.cluster {
        let serving = consensus::serve(listener, tls.clone(), between_replicas, stop.clone());
        servers.spawn(logged("cluster.listen", serving));
    }
    if let Some(credentials) = tls {
        servers.spawn(credentials.keep_current(stop.clone()));
    }
    let names = listening::host_names(config, &cluster.node.name);
    for listener in [Some(listeners.status), listeners.status_other].into_iter().flatten() {
        let serving = http::server::serve(listener, view.clone(), names.clone(), stop.clone());
        servers.spawn_on(logged("status.listen", serving), answering);
    }
    if let Some(listener) = listeners.workloads {
        let guard = UidPolicy::of_workloads(&config.registration.uids(), metrics.clone());
        let routes = grpc::with_health_and_reflection(for_workloads, &[workloads_server::SERVICE_NAME]);
        let serving = grpc::serve(listener, routes, guard, stop.clone());
        servers.spawn_on(logged("workloads.socket", serving), answering);
    }
    let guard = UidPolicy::of_operators(metrics.clone());
    let routes = grpc::with_health_and_reflection(for_operators, &[operator_server::SERVICE_NAME]);
    let serving = grpc::serve(listeners.operator, routes, guard, stop.clone());
    servers.spawn_on(logged("operator.socket", serving), answering);
    servers.spawn(grpc::report_status(inputs.clone(), observer.clone(), watchdog.clone(), stop.clone()));
    servers.spawn(observer.clone().keep_token(stop.clone()));
    servers.close();
    servers
}

async fn logged<E: std::fmt::Display>(what: &str, serving: impl Future<Output = Result<(), E>>) {
    if let Err(error) = serving.await {
        tracing::error!(what, %error, "server ended");
    }
}
