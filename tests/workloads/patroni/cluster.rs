//! A stand-in that answers like Patroni's REST API, and switches no real database.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use allclear::hooks::{Adapter, HookCommand, HookOutcome, HookTask, HttpHook};
use serde_json::{Value, json};
use tokio_rustls::TlsAcceptor;

use crate::workloads::bench::{Bench, end};
use crate::workloads::server::{Request, Server, answer};

/// The candidate in a request that checks whether a switchover would be accepted.
pub(super) const CHECK: &str = "no member: a check by allclear";

/// A Patroni cluster of three behind one address.
pub(super) struct Patroni {
    pub(super) server: Server,
    cluster: Arc<Mutex<Cluster>>,
}

pub(super) struct Cluster {
    pub(super) leader: &'static str,
    /// The state of each member while following.
    pub(super) states: Vec<(&'static str, &'static str)>,
    /// The advertised address of the members; `None`: the stand-in's address.
    pub(super) advertised: Option<&'static str>,
    /// The lag of following members, as shown by `/cluster`.
    pub(super) lag: Value,
    /// The answers to refused switchovers by candidate; a switchover to any other candidate is made.
    pub(super) refusals: BTreeMap<&'static str, (u16, &'static str)>,
    /// A refused switchover stops and restarts PostgreSQL of the leader.
    pub(super) is_stopped_in_vain: bool,
    /// The number of PostgreSQL starts.
    starts: usize,
    is_encrypted: bool,
    pub(super) accepted: Accepted,
}

/// The end of an accepted switchover.
#[derive(PartialEq, Eq)]
pub(super) enum Accepted {
    Made,
    /// The switchover is made although its answer is lost.
    AnswerLost,
    NeverMade,
}

impl Patroni {
    pub(super) async fn start() -> Self {
        Self::start_with(None).await
    }

    pub(super) async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let cluster = Arc::new(Mutex::new(Cluster {
            leader: "db-0",
            states: vec![("db-0", "streaming"), ("db-1", "streaming"), ("db-2", "streaming")],
            advertised: None,
            lag: json!(0),
            refusals: BTreeMap::new(),
            is_stopped_in_vain: false,
            starts: 1,
            is_encrypted: tls.is_some(),
            accepted: Accepted::Made,
        }));
        let behind = cluster.clone();
        let server = Server::start_with(tls, move |request| behind.lock().unwrap().respond(request)).await;
        Self { server, cluster }
    }

    pub(super) fn with(&self, change: impl FnOnce(&mut Cluster)) {
        change(&mut self.cluster.lock().unwrap());
    }

    /// The switchover requests received.
    pub(super) fn switchovers(&self) -> Vec<Value> {
        let posts = self.server.requests("POST");
        assert!(posts.iter().all(|post| post.path == "/switchover"));
        posts.iter().map(|post| serde_json::from_str(&post.body).unwrap()).collect()
    }

    pub(super) async fn outcome(&self, task: &HookTask) -> HookOutcome {
        self.outcome_of(task, HttpHook::default()).await
    }

    /// The outcome with options or members of this hook.
    pub(super) async fn outcome_of(&self, task: &HookTask, hook: HttpHook) -> HookOutcome {
        let bench = Bench::new();
        let (runner, mut reports) = bench.open();
        let argv = HttpHook { adapter: Adapter::Patroni, url: self.server.url("/"), ..hook }.command();
        runner.run(task, &HookCommand { argv, ..bench.shell("") });
        end(&mut reports).await
    }

    pub(super) fn command(&self, bench: &Bench) -> HookCommand {
        HookCommand {
            argv: HttpHook { adapter: Adapter::Patroni, ..HttpHook::at(&self.server.url("/")) }.command(),
            ..bench.shell("")
        }
    }
}

impl Cluster {
    fn respond(&mut self, request: &Request) -> Option<Vec<u8>> {
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/cluster") => answer(200, &[], &self.shown(&request.headers["host"]).to_string()),
            ("GET", "/config") => answer(200, &[], "{\"ttl\": 30}"),
            // The address belongs to the leader and to every other member.
            ("GET", "/patroni") => answer(200, &[], &self.leaders_word().to_string()),
            ("POST", "/switchover") => {
                let wanted: Value = serde_json::from_str(&request.body).unwrap();
                if let Some((status, text)) = self.refusals.get(wanted["candidate"].as_str().unwrap()) {
                    self.starts += usize::from(self.is_stopped_in_vain);
                    return answer(*status, &[], text);
                }
                if wanted.get("leader").is_none() {
                    return answer(400, &[], "Switchover could be performed only from a specific leader");
                }
                assert_eq!(wanted["leader"], self.leader);
                let (name, _) = self.states.iter().find(|(name, _)| wanted["candidate"] == *name).unwrap();
                if self.accepted != Accepted::NeverMade {
                    self.leader = name;
                }
                let said = format!("Successfully switched over to {name:?}");
                if self.accepted == Accepted::AnswerLost { None } else { answer(200, &[], &said) }
            }
            _ => answer(404, &[], ""),
        }
    }

    fn leaders_word(&self) -> Value {
        let senders = self.states.iter().filter(|(_, state)| *state == "streaming");
        let senders: Vec<_> =
            senders.map(|(name, state)| json!({ "application_name": name, "state": state })).collect();
        json!({ "role": "primary", "state": "running", "timeline": 2, "xlog": { "location": 500 },
                "postmaster_start_time": self.starts.to_string(), "replication": senders })
    }

    fn shown(&self, host: &str) -> Value {
        let scheme = if self.is_encrypted { "https" } else { "http" };
        let api = self.advertised.map_or_else(|| format!("{scheme}://{host}/patroni"), str::to_owned);
        let member = |(name, state): &(&str, &str)| {
            if *name == self.leader {
                json!({ "name": name, "role": "leader", "state": "running", "timeline": 2, "api_url": api })
            } else {
                json!({ "name": name, "role": "replica", "state": state, "timeline": 2, "lag": self.lag, "api_url": api })
            }
        };
        json!({ "members": self.states.iter().map(member).collect::<Vec<_>>(), "scope": "orders" })
    }
}
