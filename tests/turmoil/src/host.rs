//! One replica on one host: the program's own modules, wired as in `app`, with the simulation's network, disk, metadata
//! service and workload.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use allclear::consensus::{self, Consensus, MAX_VOTERS, Options};
use allclear::core::model::command::{Command, RequestAction};
use allclear::core::model::id::VmName;
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::model::version::VERSION;
use allclear::core::observation::Patience;
use allclear::core::ownership::Grants;
use allclear::core::planning_input::Timing;
use allclear::core::policy::Policy;
use allclear::grpc;
use allclear::hooks::session::Sessions;
use allclear::hooks::{HookEnvironment, HookRunner, Runner, Wall};
use allclear::imds::health::STALL_AFTER;
use allclear::imds::poll_schedule::PollSchedule;
use allclear::replica::SharedParts;
use allclear::replica::clock::{self, ClusterClock};
use allclear::replica::cluster::{ClusterHandle, NodeFacts};
use allclear::replica::hook_executor::{Configured, Former, HookExecutor, KnownCalls};
use allclear::replica::journal::ApprovalJournal;
use allclear::replica::metrics::Metrics;
use allclear::replica::poller::ImdsPoller;
use allclear::replica::state_machine::CoreStateMachine;
use allclear::replica::{Questions, ReplicaTasks, Startup};
use tokio_util::sync::CancellationToken;

use crate::history::Watched;
use crate::net;
use crate::platform::Metadata;
use crate::workload::Workload;
use crate::world::{Glance, Mistake, PORT, World};

const CLUSTER: &str = "orders";
const POLL_EVERY: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The last replica forgets one of this number of entries, if the mistake is `Forgets`.
const FORGETS_EVERY: u64 = 50;

/// Runs the replica until a fatal error, or until the host is crashed.
pub(crate) async fn run(world: Arc<World>, place: usize) -> turmoil::Result {
    let (name, life) = {
        let host = &world.hosts()[place];
        (host.name.clone(), host.lives)
    };
    world.trace.line(format_args!("{name} begins its life {life}"));
    let why = match live(&world, place, life).await {
        Ok(fatal) => fatal,
        Err(error) => format!("it could not start: {error:#}"),
    };
    world.trace.line(format_args!("{name} ends: {why}"));
    world.change(place, |host| host.ended = Some(why));
    Ok(())
}

type Started<T> = Result<T, Box<dyn std::error::Error>>;

async fn live(world: &Arc<World>, place: usize, life: u32) -> Started<String> {
    net::settle(place);
    let name = world.platform.vms[place].clone();
    let folder = world.hosts()[place].folder.clone();
    let (shared, routes) = open(world, place, &name, &folder).await?;
    let (inputs, cluster) = (shared.inputs.clone(), shared.inputs.cluster.clone());
    let (commands, of_commands) =
        Runner::open(&folder.join("hooks"), PathBuf::from("/nonexistent"), HookEnvironment::default())?;
    let (sessions, of_sessions) = Sessions::open(wall(world, place));
    let service = Arc::new(Metadata { world: world.clone(), vm: name.clone() });
    let observer = Arc::new(ImdsPoller::new(
        service,
        PollSchedule::new(POLL_EVERY),
        Patience::default(),
        STALL_AFTER,
        shared.metrics.clone(),
    ));
    let calls = KnownCalls { configured: Configured::new(), former: Former::default() };
    let front = HookRunner::new(commands, sessions);
    let hooks = Arc::new(HookExecutor::new(front, calls, false, inputs.clone(), shared.metrics.clone()));

    let routes = routes.add_service(grpc::contact_service(inputs.clone(), observer.clone()));
    let stop = CancellationToken::new();
    tokio::spawn(consensus::serve_incoming(net::listen().await?, routes, stop.clone()));
    tokio::spawn(grpc::report_status(inputs.clone(), observer.clone(), shared.watchdog.clone(), stop));
    let questions = Questions {
        surroundings: HookEnvironment::default(),
        roles: Vec::new(),
        ready: Vec::new(),
        checks: Vec::new(),
    };
    let reports = [of_commands, of_sessions];
    let startup = Startup { workloads: Vec::new(), groups: Vec::new(), questions, reports };
    let _replica = ReplicaTasks::start(shared.clone(), &observer, &hooks, startup);

    tokio::spawn(Workload { world: world.clone(), vm: name.clone(), hooks, life }.run());
    tokio::spawn(propose(world.clone(), cluster.clone(), place, life));
    tokio::spawn(read(world.clone(), cluster.clone()));
    tokio::spawn(look(world.clone(), cluster.clone(), place));
    Ok(inputs.cluster.consensus.fatal().await)
}

async fn open(
    world: &Arc<World>,
    place: usize,
    name: &VmName,
    folder: &std::path::Path,
) -> Started<(SharedParts, grpc::Routes)> {
    let manner = world.manner;
    let time = Arc::new(ClusterClock::on(wall(world, place)));
    let (state_machine, committed) = CoreStateMachine::new(time.clone(), VERSION);
    let is_last = world.platform.vms.last() == Some(name);
    let forgets = (world.mistake == Mistake::Forgets && is_last).then_some(FORGETS_EVERY);
    let state_machine =
        Watched { state_machine, state: State::default(), who: name.to_string(), world: world.clone(), forgets };
    let options = Options {
        cluster: CLUSTER.into(),
        replica: name.to_string(),
        replicas: world.names().into_iter().map(|name| (name.clone(), format!("{name}:{PORT}"))).collect(),
        max_voters: MAX_VOTERS,
        replace_after: Duration::from_mins(10),
        rejoin_after: Duration::from_mins(1),
        data_dir: folder.into(),
        timing: consensus::RaftTiming::default(),
        snapshot_every: manner.snapshot_every,
        environment: net::environment(),
        tls: None,
    };
    let (consensus, routes) = Consensus::open(options, state_machine).await?;
    let node = NodeFacts {
        name: name.clone(),
        cluster: CLUSTER.into(),
        configured: world.platform.vms.clone(),
        fingerprint: String::new(),
        policy: Policy {
            user_budget: Duration::from_secs(20),
            give_back_after: Duration::from_secs(30),
            ..Policy::default()
        },
        timing: Timing::default(),
        grants: Grants { trusted: vec![0], ..Grants::default() },
        endpoint: None,
        doctor: String::new(),
    };
    let journal = ApprovalJournal::open(folder, net::environment())?;
    let cluster = ClusterHandle { node, consensus, committed, time };
    Ok((SharedParts::new(cluster, journal, Arc::new(Metrics::new()?), VERSION), routes))
}

/// Wall clock of one host: the standard library's clock is shared by all hosts, as the platform's clock.
fn wall(world: &Arc<World>, place: usize) -> Wall {
    let world = world.clone();
    Arc::new(move || Timestamp(clock::now().0 + world.ahead(place)))
}

/// A client which proposes entries again and again.
async fn propose(world: Arc<World>, cluster: Arc<ClusterHandle>, place: usize, life: u32) {
    for number in 0_u64.. {
        tokio::time::sleep(world.dice.millis(100, 3_000)).await;
        let what = format!("{} {life}.{number}", cluster.node.name);
        let asked = OperatorRequest::ClusterChange { what: what.clone() };
        let command =
            Command::RequestAction(RequestAction { what: asked, who: "a client".into(), reason: String::new() });
        let proposed = cluster.propose(&command);
        if world.mistake == Mistake::EarlyAcknowledgement {
            let is_late = tokio::time::timeout(Duration::from_millis(200), proposed).await.is_err();
            if is_late {
                world.history.acknowledge(&what);
            }
            continue;
        }
        match proposed.await {
            Ok(_) => {
                world.history.acknowledge(&what);
                world.change(place, |host| host.acknowledged += 1);
            }
            Err(error) => world.trace.line(format_args!("{what} is not acknowledged: {error}")),
        }
    }
}

/// A client which reads: entries acknowledged before the read must be present.
async fn read(world: Arc<World>, cluster: Arc<ClusterHandle>) {
    loop {
        tokio::time::sleep(world.dice.millis(100, 5_000)).await;
        let acknowledged = world.history.acknowledged();
        if let Ok(index) = cluster.consensus.ensure_linearizable().await
            && index < acknowledged
        {
            world
                .history
                .wrong(format!("{} read at {index}, and {acknowledged} was acknowledged before", cluster.node.name));
        }
    }
}

async fn look(world: Arc<World>, cluster: Arc<ClusterHandle>, place: usize) {
    loop {
        let status = cluster.consensus.status_now();
        let open = cluster.state().open.len();
        world.change(place, |host| {
            host.glance = Glance {
                applied: status.applied,
                term: status.term,
                has_leader: status.has_leader() || status.leads(),
                open,
            };
        });
        tokio::time::sleep(LOOK_EVERY).await;
    }
}
