//! A server as a hook: the server answers at once, or with a job to poll and cancel.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allclear::hooks::{HookCall, HookCommand, HookOutcome, HookReport, HookTask, HttpHook};
use serde_json::{Value, json};
use tokio::sync::mpsc::Receiver;

use super::{Behaviour, EXPECTS, FLOOD, FLOODS, Kind, PROGRESS, Replica, of_commands};
use crate::workloads::bench::{Bench, until};
use crate::workloads::server::{Request, Server, answer};
use crate::workloads::stand_in;

pub(crate) struct Service {
    bench: Bench,
    server: Server,
    go: Arc<AtomicBool>,
    command: HookCommand,
}

impl Kind for Service {
    async fn that(behaviour: Behaviour) -> Self {
        let bench = Bench::new();
        let go = Arc::new(AtomicBool::new(false));
        let is_let_go = go.clone();
        let server = Server::start(move |request| respond(&behaviour, request, is_let_go.load(Ordering::SeqCst))).await;
        let argv = HttpHook::at(&server.url("/hook")).command();
        let command = HookCommand { argv, ..bench.shell("") };
        Self { bench, server, go, command }
    }

    async fn open(&self) -> (Replica, Receiver<HookReport>) {
        of_commands(&self.bench)
    }

    fn ask(&self, replica: &Replica, task: &HookTask) {
        replica.run(task, &HookCall::Command(self.command.clone()));
    }

    async fn ask_and_be_killed(&self) {
        let replica = stand_in::replica_of(&self.bench, &self.command);
        until(|| self.runs() > 0).await;
        stand_in::kill(replica);
    }

    fn let_go(&self) {
        self.go.store(true, Ordering::SeqCst);
    }

    fn runs(&self) -> usize {
        self.server.requests("POST").len()
    }

    async fn told(&self) -> Value {
        until(|| self.runs() > 0).await;
        serde_json::from_str(&self.server.requests("POST").last().unwrap().body).unwrap()
    }

    async fn is_told_to_end(&self) {
        until(|| !self.server.requests("DELETE").is_empty()).await;
    }
}

fn respond(behaviour: &Behaviour, request: &Request, is_let_go: bool) -> Option<Vec<u8>> {
    let is_post = request.method == "POST";
    match behaviour {
        _ if request.method == "DELETE" => answer(204, &[], ""),
        Behaviour::Ends(ended) => answer(200, &[], &said(ended)),
        Behaviour::Patient if is_let_go && !is_post => answer(200, &[], ""),
        Behaviour::Patient => running(&json!({ "progress": PROGRESS, "expected_end_s": EXPECTS })),
        Behaviour::Floods if is_post => running(&json!({})),
        Behaviour::Floods if is_let_go => {
            answer(200, &[], &json!({ "outcome": "failed", "reason": FLOOD.repeat(FLOODS) }).to_string())
        }
        Behaviour::Floods => running(&json!({ "progress": FLOOD.repeat(FLOODS) })),
    }
}

fn running(told: &Value) -> Option<Vec<u8>> {
    answer(202, &[("Location", "/jobs/1")], &told.to_string())
}

fn said(ended: &HookOutcome) -> String {
    let (outcome, reason) = match ended {
        HookOutcome::Done => ("done", ""),
        HookOutcome::NotApplicable => ("not_applicable", ""),
        HookOutcome::NotDone => ("not_done", ""),
        HookOutcome::Unknown(reason) => ("unknown", reason.as_str()),
        HookOutcome::Blocked(reason) => ("blocked", reason.as_str()),
        HookOutcome::Failed(reason) => ("failed", reason.as_str()),
        HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Lost(_) => panic!("no hook says that of itself"),
    };
    json!({ "outcome": outcome, "reason": reason }).to_string()
}
