//! Asks the configured workloads of this VM whether they serve, also while nothing is going on, and has noted what changes.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::clock;
use super::here::Here;
use crate::machine::command::Command;
use crate::machine::readiness::Answers;
use crate::machine::state::State;
use crate::machine::workload::{Condition, Member, Origin, Readiness};
use crate::workloads::{Owner, ReadyHook, Surroundings};

/// The pause before what could not be noted is proposed again.
const NOTE_AGAIN_AFTER: Duration = Duration::from_millis(500);

/// A workload that can be asked.
#[derive(Clone, Debug)]
pub struct Asked {
    pub owner: Owner,
    /// It is ready when all of them say so; never empty.
    pub hooks: Vec<ReadyHook>,
    pub every: Duration,
}

/// Runs until it is stopped.
pub(super) async fn run(here: Arc<Here>, surroundings: Surroundings, asked: Vec<Asked>, stop: CancellationToken) {
    let tasks = TaskTracker::new();
    for workload in asked {
        tasks.spawn(stop.clone().run_until_cancelled_owned(ask_on(here.clone(), surroundings.clone(), workload)));
    }
    tasks.close();
    tasks.wait().await;
}

async fn ask_on(here: Arc<Here>, surroundings: Surroundings, asked: Asked) {
    let member = Member { vm: here.name.clone(), workload: asked.owner.workload.clone() };
    let mut state = here.state.clone();
    let mut answers = Answers::default();
    loop {
        // What keeps it out asks it itself when it returns.
        while state.borrow_and_update().slots.contains_key(&member) {
            answers = Answers::default();
            if state.changed().await.is_err() {
                return;
            }
        }
        let again = clock::steady().plus(asked.every);
        let answer = ask(&asked, &surroundings).await;
        if !here.state().slots.contains_key(&member)
            && let Some(readiness) = answers.hear(answer.is_ok())
        {
            note(&here, &member, readiness, &answer).await;
        }
        tokio::select! {
            () = tokio::time::sleep(again.since(clock::steady())) => {}
            _ = state.wait_for(|state| state.slots.contains_key(&member)) => {}
        }
    }
}

async fn ask(asked: &Asked, surroundings: &Surroundings) -> Result<(), String> {
    for hook in &asked.hooks {
        hook.ask(&asked.owner, surroundings).await?;
    }
    Ok(())
}

/// Until the log says so, or something takes the member away.
async fn note(here: &Here, member: &Member, readiness: Readiness, answer: &Result<(), String>) {
    while let Some(note) = due(&here.state(), member, readiness) {
        match here.propose(&note).await {
            Ok(_) => match answer {
                Ok(()) => tracing::info!(workload = %member.workload, "it says that it is ready"),
                Err(why) => tracing::warn!(workload = %member.workload, why, "it is not ready"),
            },
            Err(_) => tokio::time::sleep(NOTE_AGAIN_AFTER).await,
        }
    }
}

/// What of it is not in the log yet. What dials in shows by its session that it is there.
fn due(state: &State, member: &Member, readiness: Readiness) -> Option<Command> {
    let replica = state.replicas.get(&member.vm)?;
    let known = replica.condition(&member.workload);
    let is_ours = replica.workload(&member.workload)?.origin == Origin::Configured;
    let is_due = is_ours && known.readiness != readiness && !state.slots.contains_key(member);
    let conditions = vec![(member.workload.clone(), Condition { readiness, ..known })];
    is_due.then_some(Command::Note { conditions })
}
