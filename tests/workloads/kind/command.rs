//! A hook that is a script.

use std::fs;

use allclear::hooks::{Call, Command, Ended, Report, Task};
use serde_json::Value;
use tokio::sync::mpsc::Receiver;

use super::{Behaviour, EXPECTS, FLOOD, FLOODS, Kind, PROGRESS, Replica, of_commands};
use crate::workloads::bench::{Bench, until};
use crate::workloads::stand_in;

pub(crate) struct Script {
    bench: Bench,
    command: Command,
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

    async fn open(&self) -> (Replica, Receiver<Report>) {
        of_commands(&self.bench)
    }

    fn ask(&self, replica: &Replica, task: &Task) {
        replica.run(task, &Call::Command(self.command.clone()));
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

fn ends(ended: &Ended) -> String {
    let (status, reason) = match ended {
        Ended::Done => (0, ""),
        Ended::NotApplicable => (11, ""),
        Ended::NotDone => (12, ""),
        Ended::Unknown(reason) => (13, reason.as_str()),
        Ended::Blocked(reason) => (75, reason.as_str()),
        Ended::Failed(reason) => (1, reason.as_str()),
        Ended::TimedOut | Ended::Cancelled | Ended::Lost(_) => panic!("no hook says that of itself"),
    };
    format!("echo '{reason}' >&2; exit {status}")
}
