//! Patroni: the use of its REST API for a failover, a restore and a check.

mod api;
mod check;
mod cluster;
mod names;
mod rejoin;
mod status;
mod switch;
mod view;

use api::Api;
use names::MemberVms;

use super::facts::Facts;
use super::server::HookServer;
use crate::hooks::HookOutcome;

/// `members` are names of members and their VMs.
pub(super) async fn run(server: &HookServer, facts: &Facts, members: &[(String, String)]) -> HookOutcome {
    let names = &MemberVms::new(members);
    let api = Api { server, facts, names };
    match (facts.text("phase"), facts.text("intent")) {
        ("failover", "run") if facts.text("mode") == "dry_run" => {
            switch::try_out(&api).await.map_or_else(|ended| ended, |()| HookOutcome::Done)
        }
        ("restore" | "ready", "run") if facts.text("mode") == "dry_run" => match api.look().await {
            Ok(_) => HookOutcome::Done,
            Err(why) => HookOutcome::Blocked(why),
        },
        ("failover", "run") => switch::fail_over(&api).await,
        ("failover", "confirm") => match api.look().await {
            Ok(view) => view.has_moved(facts, names),
            Err(why) => HookOutcome::Blocked(why),
        },
        ("check", "run") => check::check(&api).await,
        ("restore" | "ready", "run") => rejoin::await_rejoin(&api).await,
        (phase, intent) => HookOutcome::Failed(format!("Patroni cannot be asked to {intent} a hook of phase {phase}")),
    }
}
