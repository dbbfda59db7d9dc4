//! A switchover by Patroni. The request always names a candidate, because Patroni's own choice may be on the next VM of
//! the event. After a refusal by Patroni the next candidate is tried.
//!
//! Steps, and the effect of a kill of the hook after each step: (1) looking: nothing; (2) the POST: Patroni completes
//! the switchover automatically, with the leader's key in its own store, or gives up; (3) waiting for the new leader:
//! nothing. After a kill, `confirm` asks for the current leader, and a repeated run is not applicable once the leader
//! has moved. So no kill can make a second leader.

use std::cell::Cell;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::api::{Api, refusal};
use super::view::{Switchover, nobody};
use crate::hooks::HookOutcome;
use crate::http_client::{ExchangeError, Reply};

const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The meaning of the answer to a switchover.
#[derive(PartialEq, Debug)]
enum SwitchoverReply {
    /// Made: only the new leader is not visible yet.
    Made,
    /// Refused before any action.
    Refused(String),
    /// Begun and given up: Patroni may have stopped the leader's PostgreSQL for the switchover.
    GivenUp(String),
}

/// Switches over. Patroni cannot take back a switchover, so a cancelled hook counts as stopped only before the request.
pub(super) async fn fail_over(api: &Api<'_>) -> HookOutcome {
    let mut terminate = match signal(SignalKind::terminate()) {
        Ok(terminate) => terminate,
        Err(error) => return HookOutcome::Blocked(format!("nothing was sent to Patroni: {error}")),
    };
    let is_asked = Cell::new(false);
    tokio::select! {
        biased;
        _ = terminate.recv() => if is_asked.get() {
            HookOutcome::Unknown("cancelled during the switchover, which Patroni completes or gives up".to_owned())
        } else {
            HookOutcome::Cancelled
        },
        ended = switch_over(api, &is_asked) => ended.unwrap_or_else(|ended| ended),
    }
}

/// An error is an outcome before the wait for the new leader.
async fn switch_over(api: &Api<'_>, is_asked: &Cell<bool>) -> Result<HookOutcome, HookOutcome> {
    let plan = api.look().await.map_err(HookOutcome::Blocked)?.plan(api.facts, api.names)?;
    let mut refused = Vec::new();
    for candidate in &plan.candidates {
        api.server.say("progress", format_args!("switching over from {} to {candidate}", plan.leader));
        is_asked.set(true);
        let why = match answer(api.switch_over(plan.leaders_api.as_deref(), &plan.leader, candidate).await)? {
            SwitchoverReply::Made => return Ok(await_switch(api, &plan).await),
            SwitchoverReply::Refused(why) => why,
            SwitchoverReply::GivenUp(why) => {
                given_up(api, &plan, candidate, &why).await?;
                why
            }
        };
        refused.push(format!("Patroni refused {candidate}: {why}"));
    }
    refused.extend(plan.unfit);
    Err(HookOutcome::Blocked(nobody(&refused)))
}

/// Checks everything except the switchover itself: the candidate, and whether the leader would accept the request.
pub(super) async fn try_out(api: &Api<'_>) -> Result<(), HookOutcome> {
    let plan = api.look().await.map_err(HookOutcome::Blocked)?.plan(api.facts, api.names)?;
    let url = api.url_of(plan.leaders_api.as_deref());
    let may = api.may_switch_over(url.as_ref().unwrap_or(&api.server.url)).await;
    may.map_err(|why| HookOutcome::Blocked(format!("{} would refuse a switchover: {why}", plan.leader)))?;
    api.server
        .say("progress", format_args!("would switch over from {} to {}", plan.leader, plan.candidates.join(" or ")));
    Ok(())
}

fn answer(reply: Result<Reply, ExchangeError>) -> Result<SwitchoverReply, HookOutcome> {
    let reply = reply.map_err(|failure| match failure {
        ExchangeError::NotSent(why) => HookOutcome::Blocked(format!("nothing was sent to Patroni: {why}")),
        ExchangeError::Lost(why) => HookOutcome::Unknown(format!("the answer to the switchover was lost: {why}")),
    })?;
    let (why, body) = (refusal(&reply), String::from_utf8_lossy(&reply.body));
    Err(match reply.status {
        200 => return Ok(SwitchoverReply::Made),
        // The cluster has changed since the last view, and is viewed again before the next request.
        412 if body.contains("leader name") => HookOutcome::Blocked(why),
        412 => return Ok(SwitchoverReply::Refused(why)),
        409 | 429 => HookOutcome::Blocked(why),
        503 if body.contains("failed to write") => HookOutcome::Blocked(why),
        503 if body.contains("unknown") => HookOutcome::Unknown(why),
        503 => return Ok(SwitchoverReply::GivenUp(why)),
        300..=499 => HookOutcome::Failed(why),
        _ => HookOutcome::Unknown(why),
    })
}

/// Whether the next candidate may be tried: only if the leader's PostgreSQL kept running. A useless stop of writes
/// counts as a failed attempt, and an event has few attempts.
async fn given_up(api: &Api<'_>, plan: &Switchover, candidate: &str, why: &str) -> Result<(), HookOutcome> {
    let Switchover { leader, started, .. } = plan;
    let view = api.look().await.map_err(|unseen| HookOutcome::Unknown(format!("{why}; {unseen}")))?;
    if let Some(ended) = view.moved_from(leader, api.facts, api.names) {
        return Err(ended);
    }
    if let Err(unled) = view.cluster.leader() {
        return Err(HookOutcome::Unknown(format!("{why}; {unled}")));
    }
    match (started, view.started()) {
        (Some(before), Some(after)) if *before == after => Ok(()),
        (Some(_), Some(_)) => Err(HookOutcome::Failed(format!(
            "Patroni stopped PostgreSQL on {leader} for a switchover to {candidate}, the switchover failed, and \
             Patroni started PostgreSQL again on {leader}: {why}"
        ))),
        _ => Err(HookOutcome::Failed(format!(
            "Patroni gave up the switchover to {candidate}, and it is unknown whether Patroni stopped PostgreSQL on \
             {leader}: {why}"
        ))),
    }
}

async fn await_switch(api: &Api<'_>, plan: &Switchover) -> HookOutcome {
    loop {
        if let Ok(view) = api.look().await
            && let Some(ended) = view.moved_from(&plan.leader, api.facts, api.names)
        {
            return ended;
        }
        if api.facts.time_left().is_zero() {
            return HookOutcome::Unknown("no new leader appeared after the switchover".to_owned());
        }
        sleep(LOOK_EVERY.min(api.facts.time_left())).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to(status: u16, body: &str) -> Result<SwitchoverReply, HookOutcome> {
        answer(Ok(Reply { status, body: body.into(), ..Reply::default() }))
    }

    /// Texts of 2.1.7, 3.0.2 and 4.1.5, equal in all three.
    #[test]
    fn the_answers_to_a_switchover_are_understood() {
        assert_eq!(to(200, "Successfully switched over to \"db-1\""), Ok(SwitchoverReply::Made));
        for refused in [
            "candidate name does not match with sync_standby",
            "candidate does not exists",
            "switchover is not possible: no good candidates have been found",
        ] {
            assert_eq!(to(412, refused), Ok(SwitchoverReply::Refused(format!("412 Precondition Failed: {refused}"))));
        }
        assert!(matches!(to(412, "leader name does not match"), Err(HookOutcome::Blocked(_))));
        assert!(matches!(to(503, "failed to write failover key into DCS"), Err(HookOutcome::Blocked(_))));
        assert!(matches!(to(503, "Switchover failed"), Ok(SwitchoverReply::GivenUp(_))));
        assert!(matches!(to(503, "Switchover status unknown"), Err(HookOutcome::Unknown(_))));
        assert!(matches!(to(504, "Switchover status unknown"), Err(HookOutcome::Unknown(_))));
        assert!(matches!(to(500, ""), Err(HookOutcome::Unknown(_))));
        assert!(matches!(to(202, "Switchover scheduled"), Err(HookOutcome::Unknown(_))));
        assert!(matches!(answer(Err(ExchangeError::Lost(String::new()))), Err(HookOutcome::Unknown(_))));
        assert!(matches!(answer(Err(ExchangeError::NotSent(String::new()))), Err(HookOutcome::Blocked(_))));
    }

    #[test]
    fn a_refusal_of_whoever_asks_tells_what_to_set() {
        for (status, body, setting) in
            [(401, "no auth header received", "`password_file`"), (403, "client certificate required", "`cert`")]
        {
            let Err(HookOutcome::Failed(why)) = to(status, body) else { panic!("{status}") };
            assert!(why.contains(body) && why.contains(setting), "{why}");
        }
    }
}
