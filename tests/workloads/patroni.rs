//! The Patroni adapter against a stand-in: it answers as Patroni's REST API does, and switches nothing real.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use allclear::machine::workload::{Intent, Phase};
use allclear::workloads::{Adapter, Command, Ended, News, Task};
use serde_json::{Value, json};

use crate::bench::{Bench, end, next, task, within};
use crate::server::{Request, Server, answer};

/// A Patroni cluster of three behind one address.
struct Patroni {
    server: Server,
    cluster: Arc<Mutex<Cluster>>,
}

struct Cluster {
    leader: &'static str,
    /// Per member that follows.
    states: Vec<(&'static str, &'static str)>,
    /// How the next switchover is answered; what is left out is made.
    refusal: Option<(u16, &'static str)>,
    /// It is made all the same.
    loses_the_answer: bool,
}

impl Patroni {
    async fn start() -> Self {
        let cluster = Arc::new(Mutex::new(Cluster {
            leader: "db-0",
            states: vec![("db-0", "streaming"), ("db-1", "streaming"), ("db-2", "streaming")],
            refusal: None,
            loses_the_answer: false,
        }));
        let behind = cluster.clone();
        let server = Server::start(move |request| behind.lock().unwrap().respond(request)).await;
        Self { server, cluster }
    }

    fn with(&self, change: impl FnOnce(&mut Cluster)) {
        change(&mut self.cluster.lock().unwrap());
    }

    /// What was asked of it.
    fn switchovers(&self) -> Vec<Value> {
        let posts = self.server.requests("POST");
        assert!(posts.iter().all(|post| post.path == "/switchover"));
        posts.iter().map(|post| serde_json::from_str(&post.body).unwrap()).collect()
    }

    async fn outcome(&self, task: &Task) -> Ended {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        runner.run(task, &self.command(&bench));
        end(&mut reports).await
    }

    fn command(&self, bench: &Bench) -> Command {
        Command { argv: Adapter::Patroni.command(&self.server.url("/")), ..bench.shell("") }
    }
}

impl Cluster {
    fn respond(&mut self, request: &Request) -> Option<Vec<u8>> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/cluster") => answer(200, &[], &self.shown().to_string()),
            ("POST", "/switchover") => {
                if let Some((status, text)) = self.refusal.take() {
                    return answer(status, &[], text);
                }
                let wanted: Value = serde_json::from_str(&request.body).unwrap();
                assert_eq!(wanted["leader"], self.leader);
                let (name, _) = self.states.iter().find(|(name, _)| wanted["candidate"] == *name).unwrap();
                self.leader = name;
                let said = format!("Successfully switched over to {name:?}");
                if self.loses_the_answer { None } else { answer(200, &[], &said) }
            }
            _ => answer(404, &[], ""),
        }
    }

    fn shown(&self) -> Value {
        let member = |(name, state): &(&str, &str)| {
            if *name == self.leader {
                json!({ "name": name, "role": "leader", "state": "running", "timeline": 2 })
            } else {
                json!({ "name": name, "role": "replica", "state": state, "timeline": 2, "lag": 0 })
            }
        };
        json!({ "members": self.states.iter().map(member).collect::<Vec<_>>(), "scope": "orders" })
    }
}

fn asking(intent: Intent, phase: Phase) -> Task {
    Task { intent, phase, ..task() }
}

#[tokio::test]
async fn the_leader_is_moved_to_the_preferred_standby_and_that_can_be_confirmed() {
    let patroni = Patroni::start().await;
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, Ended::NotDone);
    assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, Ended::Done);
    assert_eq!(patroni.switchovers(), [json!({ "leader": "db-0", "candidate": "db-2" })]);
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, Ended::Done);
    assert_eq!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, Ended::NotApplicable);
    assert_eq!(patroni.switchovers().len(), 1);
}

#[tokio::test]
async fn without_a_fit_standby_nothing_is_asked_for() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| cluster.states = vec![("db-0", ""), ("db-1", "starting"), ("db-2", "stopped")]);
    let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
    assert!(matches!(&ended, Ended::Blocked(why) if why.contains("db-1 is not streaming")), "{ended}");
    assert_eq!(patroni.switchovers().len(), 0);
}

#[tokio::test]
async fn a_switchover_that_is_refused_is_blocked_and_one_that_is_lost_is_unknown() {
    let patroni = Patroni::start().await;
    for (status, text) in [(412, "candidate name does not match with sync_standby"), (503, "Switchover failed")] {
        patroni.with(|cluster| cluster.refusal = Some((status, text)));
        let ended = patroni.outcome(&asking(Intent::Run, Phase::Failover)).await;
        assert!(matches!(&ended, Ended::Blocked(why) if why.contains(text)), "{ended}");
    }
    patroni.with(|cluster| cluster.loses_the_answer = true);
    assert!(matches!(patroni.outcome(&asking(Intent::Run, Phase::Failover)).await, Ended::Unknown(_)));
    assert_eq!(patroni.outcome(&asking(Intent::Confirm, Phase::Failover)).await, Ended::Done);
}

#[tokio::test]
async fn a_restore_waits_until_the_member_streams_again() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| {
        cluster.leader = "db-2";
        cluster.states[0].1 = "starting";
    });
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    runner.run(&asking(Intent::Run, Phase::Restore), &patroni.command(&bench));
    let News::Progress { text, .. } = next(&mut reports).await else { panic!("it waits") };
    assert_eq!(text.as_deref(), Some("db-0 is not streaming but \"starting\""));
    patroni.with(|cluster| cluster.states[0].1 = "streaming");
    assert_eq!(end(&mut reports).await, Ended::Done);
    assert_eq!(patroni.switchovers().len(), 0);
}

#[tokio::test]
async fn a_restore_ends_at_its_deadline() {
    let patroni = Patroni::start().await;
    patroni.with(|cluster| {
        cluster.leader = "db-2";
        cluster.states[0].1 = "starting";
    });
    let task = Task { deadline: within(Duration::from_secs(2)), ..asking(Intent::Run, Phase::Restore) };
    assert_eq!(patroni.outcome(&task).await, Ended::TimedOut);
}
