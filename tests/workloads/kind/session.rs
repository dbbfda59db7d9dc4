//! A hook of a session workload: the library on one side, the service on the other, a Unix socket between them. Beside
//! the hook the replica has the service's foundation: the log, with the replica as the only member.

use std::fs::{self, File};
use std::io::Write as _;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use allclear::consensus::{self, Consensus, Environment, RaftStatus};
use allclear::core::cluster_time::ClockReading;
use allclear::core::model::command::{BeginLeadership, Command, RegisterWorkloads, ReportDocument};
use allclear::core::model::document::{Announcement, Document, NotBefore, Status};
use allclear::core::model::id::WorkloadName;
use allclear::core::model::version::VERSION;
use allclear::core::ownership::Grants;
use allclear::core::planning_input::Timing;
use allclear::core::policy::Policy;
use allclear::grpc;
use allclear::hooks::session::{Dispatch, Sessions};
use allclear::hooks::{AttemptState, HookCall, HookOutcome, HookReport, HookRunner, HookTask};
use allclear::replica::SharedParts;
use allclear::replica::clock::{self, ClusterClock};
use allclear::replica::cluster::{ClusterHandle, NodeFacts};
use allclear::replica::hook_executor::{Configured, Former, HookExecutor, KnownCalls};
use allclear::replica::journal::ApprovalJournal;
use allclear::replica::metrics::Metrics;
use allclear::replica::state_machine::CoreStateMachine;
use allclear::replica::view::View;
use allclear::workload::{self, Handle, Hook, Intent, Outcome, Phase, Workload};
use serde_json::{Value, json};
use tokio::net::UnixListener;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Behaviour, EXPECTS, FLOOD, FLOODS, Kind, Replica};
use crate::workloads::bench::{ATTEMPT, Bench, LIMIT, task, until};
use crate::workloads::{bench, stand_in};

pub(crate) struct Session {
    bench: Bench,
    _dials: Handle,
}

/// A replica open to connections of workloads.
pub(crate) struct Served {
    hooks: Arc<HookExecutor>,
    _serving: DropGuard,
}

impl Deref for Served {
    type Target = HookRunner;

    fn deref(&self) -> &HookRunner {
        &self.hooks.runner
    }
}

impl Kind for Session {
    async fn that(behaviour: Behaviour) -> Self {
        let bench = Bench::new();
        let act = |behaviour: Behaviour| {
            let folder = bench.folder.path().to_owned();
            move |step| perform(folder.clone(), behaviour.clone(), step)
        };
        let hook = Hook::new(Phase::Failover, act(behaviour.clone()));
        let hook = hook.confirm(act(behaviour.clone())).undo(act(behaviour));
        let workload = Workload::new(&task().workload.0, socket(bench.folder.path())).group("orders-db").hook(hook);
        let dials = workload.start().unwrap();
        Self { bench, _dials: dials }
    }

    async fn open(&self) -> (Replica, Receiver<HookReport>) {
        let (served, reports) = serve(self.bench.folder.path()).await;
        (Box::new(served), reports)
    }

    /// A step already in the log when this replica begins was dispatched in a previous run.
    fn ask(&self, replica: &Replica, task: &HookTask) {
        let is_left_over = self.bench.path("killed").exists();
        replica.run(task, &HookCall::Session(Dispatch { is_left_over, deadline: task.deadline.on_the_wall }));
    }

    async fn ask_and_be_killed(&self) {
        let replica = stand_in::served_replica(&self.bench);
        until(|| self.runs() > 0).await;
        stand_in::kill(replica);
        fs::write(self.bench.path("killed"), "").unwrap();
    }

    /// The attempt becomes known by the report of its workload on connecting.
    async fn finds_it_running(&self, replica: &Replica) {
        let claim = (WorkloadName("postgres".into()), ATTEMPT.to_owned(), None);
        until(|| replica.sessions.claims() == [claim.clone()]).await;
        self.ask(replica, &task());
        assert_eq!(replica.known(ATTEMPT), Some(AttemptState::Running));
    }

    fn let_go(&self) {
        fs::write(self.bench.path("go"), "").unwrap();
    }

    fn runs(&self) -> usize {
        fs::read_to_string(self.bench.path("ran")).map_or(0, |ran| ran.lines().count())
    }

    async fn told(&self) -> Value {
        serde_json::from_str(&self.bench.line("facts").await).unwrap()
    }

    async fn is_told_to_end(&self) {
        until(|| self.bench.path("ended").exists()).await;
    }
}

fn socket(folder: &Path) -> PathBuf {
    folder.join("socket")
}

/// A replica that continues from the state left over in this folder, once the workload has connected.
pub(crate) async fn serve(folder: &Path) -> (Served, Receiver<HookReport>) {
    let name = task().vm;
    let time = Arc::new(ClusterClock::default());
    let (state_machine, committed) = CoreStateMachine::new(time.clone(), VERSION);
    let data_dir = folder.join("data");
    let options = consensus::Options {
        cluster: "tests".into(),
        replica: name.to_string(),
        // no other replica sends a request here
        replicas: vec![(name.to_string(), "127.0.0.1:9".into())],
        max_voters: consensus::MAX_VOTERS,
        replace_after: LIMIT,
        rejoin_after: LIMIT,
        data_dir: data_dir.clone(),
        timing: consensus::RaftTiming::default(),
        snapshot_every: consensus::SNAPSHOT_EVERY,
        environment: Environment::default(),
        tls: None,
    };
    let (consensus, _) = Consensus::open(options, state_machine).await.unwrap();
    let node = NodeFacts {
        name: name.clone(),
        cluster: "tests".into(),
        configured: vec![name.clone()],
        policy: Policy::default(),
        fingerprint: String::new(),
        timing: Timing::default(),
        grants: Grants { trusted: vec![0], ..Grants::default() },
        endpoint: None,
        doctor: String::new(),
    };
    let journal = ApprovalJournal::open(&data_dir, Environment::default()).unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let shared =
        SharedParts::new(ClusterHandle { node, consensus, committed, time }, journal, metrics.clone(), VERSION);
    let cluster = &shared.inputs.cluster;
    // without status reports the cluster time has no other source
    cluster.time.lead();
    assert!(cluster.time.agree(&[ClockReading { wall: Some(0), ..ClockReading::default() }], 1));
    timeout(LIMIT, learn(cluster)).await.expect("it leads itself");
    let (sessions, reports) = Sessions::open(Arc::new(clock::now));
    let (commands, _) = bench::open(&folder.join("hooks"));
    let calls = KnownCalls { configured: Configured::new(), former: Former::default() };
    let front = HookRunner::new(commands, sessions);
    let hooks = Arc::new(HookExecutor::new(front, calls, false, shared.inputs.clone(), metrics.clone()));
    let path = socket(folder);
    // left behind by a killed replica
    let _ = fs::remove_file(&path);
    let listener = UnixListener::bind(&path).unwrap();
    let guard = grpc::UidPolicy::of_workloads(&[], metrics.clone());
    let stop = CancellationToken::new();
    let routes = grpc::workload_routes(&shared, hooks.clone(), View::new(&shared), stop.clone());
    tokio::spawn(grpc::serve(listener, routes, guard, stop.clone()));
    let (replica, name) = (Served { hooks, _serving: stop.drop_guard() }, task().workload);
    let is_here = || replica.sessions.presences().iter().any(|each| each.workload.name == name && each.connected);
    until(is_here).await;
    (replica, reports)
}

/// Records the leadership, the replica and the event in the log.
async fn learn(cluster: &ClusterHandle) {
    let mut status = cluster.consensus.status();
    let (term, turn) = status.wait_for(RaftStatus::leads).await.map(|status| (status.term, status.turn)).unwrap();
    let voters = vec![cluster.node.name.clone()];
    cluster.record(&Command::BeginLeadership(BeginLeadership { term, turn, voters })).await;
    cluster.record(&Command::RegisterWorkloads(RegisterWorkloads { workloads: Vec::new(), groups: Vec::new() })).await;
    let task = task();
    let event = Announcement {
        id: task.event_id,
        status: Status::Scheduled,
        kind: task.event_type,
        source: task.event_source,
        resource_type: "VirtualMachine".into(),
        resources: task.resources,
        not_before: NotBefore::Unknown,
        description: String::new(),
        duration: None,
    };
    cluster.record(&Command::ReportDocument(ReportDocument { after: 0, document: Document::new(vec![event]) })).await;
}

async fn perform(folder: PathBuf, behaviour: Behaviour, step: workload::Step) -> Outcome {
    let note = |file: &str, line: &str| {
        let file = File::options().create(true).append(true).open(folder.join(file));
        file.and_then(|mut file| writeln!(file, "{line}")).unwrap();
    };
    note("facts", &facts(&step).to_string());
    note("ran", &step.attempt);
    let (progress, end) = match behaviour {
        Behaviour::Ends(ended) => return says(ended),
        Behaviour::Patient => (super::PROGRESS.to_owned(), Outcome::Done),
        Behaviour::Floods => (FLOOD.repeat(FLOODS), Outcome::Failed(FLOOD.repeat(FLOODS))),
    };
    while !folder.join("go").exists() {
        step.progress(&progress);
        step.expect(Duration::from_secs_f64(EXPECTS));
        let pause = Duration::from_millis(20);
        if timeout(pause, step.cancelled()).await.is_ok() {
            note("ended", "");
            return Outcome::Cancelled;
        }
    }
    end
}

fn facts(step: &workload::Step) -> Value {
    let intent = match step.intent {
        Intent::Run => "run",
        Intent::Confirm => "confirm",
        Intent::Undo => "undo",
        Intent::Unspecified => panic!("it is told nothing"),
    };
    assert_eq!(step.phase, Phase::Failover);
    json!({
        "event_id": step.event.id, "phase": "failover", "workload": "postgres", "vm": step.vm, "intent": intent,
        "attempt": step.attempt, "step": step.id, "fence": format!("{}.{}", step.fence.0, step.fence.1),
        "avoid_vms": step.avoid, "time_left_ms": u64::try_from(step.time_left().as_millis()).unwrap(),
    })
}

fn says(ended: HookOutcome) -> Outcome {
    match ended {
        HookOutcome::Done => Outcome::Done,
        HookOutcome::NotApplicable => Outcome::NotApplicable,
        HookOutcome::NotDone => Outcome::NotDone,
        HookOutcome::Unknown(reason) => Outcome::Unknown(reason),
        HookOutcome::Blocked(reason) => Outcome::Blocked(reason),
        HookOutcome::Failed(reason) => Outcome::Failed(reason),
        HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Lost(_) => panic!("no hook says that of itself"),
    }
}
