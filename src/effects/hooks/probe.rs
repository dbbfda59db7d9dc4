//! Runs `ready` and `check` hooks without an event: whether a workload serves, and whether its hooks would work.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::command::{HookCommand, HookEnvironment, Question, clock};
use super::contract::{self, exit};
use allclear_core::model::drill::Mode;
use allclear_core::model::id::{GroupName, VmName, WorkloadName};
use allclear_core::model::time::Timestamp;
use allclear_core::model::workload::{Intent, Phase};

/// A `ready` or `check` hook of a workload.
#[derive(Clone, Debug)]
pub struct ProbeHook {
    pub phase: Phase,
    pub command: HookCommand,
    /// The maximum duration of an answer.
    pub timeout: Duration,
}

/// The owner of the hook.
#[derive(Clone, Debug)]
pub struct Owner {
    pub workload: WorkloadName,
    pub group: Option<GroupName>,
    pub vm: VmName,
}

impl ProbeHook {
    /// Whether the workload is ready, or passes the check; an error is the reason why not, or why the answer is unknown.
    pub async fn ask(&self, owner: &Owner, surroundings: &HookEnvironment) -> Result<(), String> {
        let facts = facts(owner, self.phase, Timestamp(clock::now().0).plus(self.timeout));
        let facts = contract::with_time_left(facts, self.timeout);
        let variables = contract::variables(&facts).collect();
        let input = format!("{}\n", Value::Object(facts));
        let answer = Question { command: &self.command, variables, input }.ask(surroundings, self.timeout).await?;
        let is_good = [exit::DONE, exit::NOT_APPLICABLE].map(i32::from).map(Some).contains(&answer.status.code());
        if is_good {
            return Ok(());
        }
        Err(answer.failure())
    }
}

/// The facts of every hook, with empty values for the event.
fn facts(owner: &Owner, phase: Phase, deadline: Timestamp) -> Map<String, Value> {
    // As in a drill, a check changes nothing.
    let mode = if phase == Phase::Check { Mode::DryRun.as_str() } else { "live" };
    let facts = [
        ("event_id", Value::Null),
        ("event_type", Value::Null),
        ("event_source", Value::Null),
        ("event_resources", json!([])),
        ("phase", json!(phase.as_str())),
        ("workload", json!(owner.workload.0)),
        ("group", json!(owner.group.as_ref().map(|group| &group.0))),
        ("vm", json!(owner.vm.as_str())),
        ("attempt", Value::Null),
        ("step", Value::Null),
        ("fence", Value::Null),
        ("intent", json!(Intent::Run.as_str())),
        ("deadline", json!(contract::rfc3339(deadline))),
        ("avoid_vms", json!([])),
        ("prefer_vms", json!([])),
        ("traceparent", Value::Null),
        ("mode", json!(mode)),
    ];
    facts.into_iter().map(|(name, fact)| (name.to_owned(), fact)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn ask(script: &str, timeout: Duration) -> Result<(), String> {
        ask_in(Phase::Ready, script, timeout).await
    }

    async fn ask_in(phase: Phase, script: &str, timeout: Duration) -> Result<(), String> {
        let argv = ["/bin/sh", "-euc", script].map(str::to_owned).into();
        let hook = ProbeHook { phase, command: HookCommand { argv, ..HookCommand::default() }, timeout };
        let owner = Owner { workload: WorkloadName("pg".into()), group: None, vm: VmName::new("db-0") };
        hook.ask(&owner, &HookEnvironment::default()).await
    }

    #[tokio::test]
    async fn what_is_done_is_ready_and_everything_else_says_why_not() {
        let long = Duration::from_secs(20);
        assert_eq!(ask("exit 0", long).await, Ok(()));
        assert_eq!(ask("exit 11", long).await, Ok(()));
        assert_eq!(ask("echo lags >&2; exit 75", long).await, Err("lags".into()));
        assert_eq!(ask("exit 12", long).await, Err("the command ended with exit status: 12".into()));
        assert_eq!(
            ask("exec sleep 60", Duration::from_millis(50)).await,
            Err("the command did not end within 50 ms".into())
        );
    }

    #[tokio::test]
    async fn a_check_is_told_that_it_changes_nothing() {
        let script = r#"test "$ALLCLEAR_PHASE.$ALLCLEAR_MODE" = check.dry_run"#;
        assert_eq!(ask_in(Phase::Check, script, Duration::from_secs(20)).await, Ok(()));
    }

    /// Every variable of the contract is set for a script under `set -u`.
    #[tokio::test]
    async fn it_is_told_what_every_hook_is_told() {
        let script = r#"test "$ALLCLEAR_VM.$ALLCLEAR_WORKLOAD.$ALLCLEAR_PHASE.$ALLCLEAR_INTENT" = db-0.pg.ready.run
            test -z "$ALLCLEAR_EVENT_ID$ALLCLEAR_EVENT_RESOURCES$ALLCLEAR_GROUP$ALLCLEAR_ATTEMPT$ALLCLEAR_FENCE"
            test "$ALLCLEAR_TIME_LEFT_MS" -gt 0; test "$ALLCLEAR_MODE" = live; test "$ALLCLEAR_DEADLINE"
            grep -q '"phase":"ready"'"#;
        assert_eq!(ask(script, Duration::from_secs(20)).await, Ok(()));
    }
}
