//! A script as a hook.

use std::fs;

use allclear::hooks::{HookCall, HookCommand, HookOutcome, HookReport, HookTask};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use super::{Behaviour, EXPECTS, FLOOD, FLOODS, Kind, PROGRESS, Replica, of_commands};
use crate::workloads::bench::{Bench, until};
use crate::workloads::stand_in;

pub(crate) struct Script {
    bench: Bench,
    command: HookCommand,
}

impl Kind for Script {
    async fn that(behaviour: Behaviour) -> Self {
        let bench = Bench::new();
        let acts = match behaviour {
            Behaviour::Ends(ended) => ends(&ended),
            Behaviour::Patient => format!(
                "echo expect: {EXPECTS}; echo progress: {PROGRESS}
                 while [ ! -e $BENCH/go ]; do sleep 0.02; done"
            ),
            Behaviour::Floods => {
                let flood = format!("for i in $(seq {FLOODS}); do printf '{FLOOD}'; done");
                format!("printf 'progress: '; {flood}; echo; {{ {flood}; echo; }} >&2; exit 1")
            }
        };
        let begins = "cat > $BENCH/facts; echo $$ >> $BENCH/ran; trap 'echo > $BENCH/ended; exit 0' TERM";
        let command = bench.shell(&format!("{begins}; {acts}"));
        Self { bench, command }
    }

    async fn open(&self) -> (Replica, Receiver<HookReport>) {
        of_commands(&self.bench)
    }

    fn ask(&self, replica: &Replica, task: &HookTask) {
        replica.run(task, &HookCall::Command(self.command.clone()));
    }

    async fn ask_and_be_killed(&self) {
        let replica = stand_in::replica_of(&self.bench, &self.command);
        self.bench.line("ran").await;
        stand_in::kill(replica);
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

fn ends(ended: &HookOutcome) -> String {
    let (status, reason) = match ended {
        HookOutcome::Done => (0, ""),
        HookOutcome::NotApplicable => (11, ""),
        HookOutcome::NotDone => (12, ""),
        HookOutcome::Unknown(reason) => (13, reason.as_str()),
        HookOutcome::Blocked(reason) => (75, reason.as_str()),
        HookOutcome::Failed(reason) => (1, reason.as_str()),
        HookOutcome::TimedOut | HookOutcome::Cancelled | HookOutcome::Lost(_) => panic!("no hook says that of itself"),
    };
    format!("echo '{reason}' >&2; exit {status}")
}
