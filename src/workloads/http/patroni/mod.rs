//! Patroni: what its REST API is asked for a failover and a restore. A switchover always names its candidate, which
//! Patroni left to itself may find on a VM that is the next to go.

mod cluster;

use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;

use cluster::{Cluster, Switch};

use super::answer::why;
use super::facts::Facts;
use super::server::Server;
use super::{exchange, say};
use crate::http_client::{Failure, Method, Reply, Url, parse_external};
use crate::workloads::Ended;

const LOOK_EVERY: Duration = Duration::from_secs(1);
const LOOK_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn run(server: &Server, facts: &Facts) -> Ended {
    match (facts.text("phase"), facts.text("intent")) {
        ("failover", "run") => fail_over(server, facts).await.unwrap_or_else(|ended| ended),
        ("failover", "confirm") => match look(server, facts).await {
            Ok(cluster) => cluster.has_moved(facts),
            Err(why) => Ended::Blocked(why),
        },
        ("restore" | "ready", "run") => await_rejoin(server, facts).await,
        (phase, intent) => Ended::Failed(format!("Patroni cannot be asked to {intent} a hook of phase {phase}")),
    }
}

/// An error is how it ended before anybody was waited for.
async fn fail_over(server: &Server, facts: &Facts) -> Result<Ended, Ended> {
    let switch = look(server, facts).await.map_err(Ended::Blocked)?.plan(facts)?;
    say("progress", format_args!("switching over from {} to {}", switch.leader, switch.candidate));
    let url = switch.leaders_api.as_deref().and_then(|api| parse_external(api).ok());
    let url = url.filter(|url| url.scheme() == server.url.scheme());
    let url = path(url.as_ref().unwrap_or(&server.url), "switchover");
    let wanted = json!({ "leader": switch.leader, "candidate": switch.candidate });
    let post = server.request(Method::POST, url).json(&wanted);
    switched(exchange(post, facts.time_left()).await)?;
    Ok(await_switch(server, facts, &switch).await)
}

/// What the answer to a switchover means; where it was made, only where to is left to see.
fn switched(reply: Result<Reply, Failure>) -> Result<(), Ended> {
    let reply = reply.map_err(|failure| match failure {
        Failure::NotSent(why) => Ended::Blocked(format!("nothing was sent to the leader: {why}")),
        Failure::Lost(why) => Ended::Unknown(format!("the answer to the switchover was lost: {why}")),
    })?;
    Err(match reply.status {
        200 => return Ok(()),
        // The cluster has changed since it was looked at, or the switchover was given up without an effect. It is
        // looked at again before anything is sent again.
        409 | 412 | 429 | 503 => Ended::Blocked(why(&reply)),
        300..=499 => Ended::Failed(why(&reply)),
        _ => Ended::Unknown(why(&reply)),
    })
}

async fn await_switch(server: &Server, facts: &Facts, switch: &Switch) -> Ended {
    loop {
        if let Ok(cluster) = look(server, facts).await
            && let Some(ended) = cluster.moved_from(&switch.leader, facts)
        {
            return ended;
        }
        if facts.time_left().is_zero() {
            return Ended::Unknown("no new leader was seen after the switchover".to_owned());
        }
        sleep(LOOK_EVERY.min(facts.time_left())).await;
    }
}

/// Patroni lets a member rejoin by itself; it is only awaited.
async fn await_rejoin(server: &Server, facts: &Facts) -> Ended {
    let mut told = None;
    loop {
        let waits = match look(server, facts).await {
            Ok(cluster) => cluster.rejoined(facts),
            Err(why) => Err(why),
        };
        let Err(why) = waits else { return Ended::Done };
        if facts.time_left().is_zero() {
            return Ended::Failed(why);
        }
        if told.as_ref() != Some(&why) {
            say("progress", &why);
            told = Some(why);
        }
        sleep(LOOK_EVERY.min(facts.time_left())).await;
    }
}

async fn look(server: &Server, facts: &Facts) -> Result<Cluster, String> {
    let question = server.request(Method::GET, path(&server.url, "cluster"));
    let failed = |why: &str| format!("Patroni cannot be asked about its cluster: {why}");
    match exchange(question, LOOK_WITHIN.min(facts.time_left())).await {
        Ok(reply) if reply.status == 200 => {
            Cluster::read(&String::from_utf8_lossy(&reply.body)).map_err(|why| failed(&why))
        }
        Ok(reply) => Err(failed(&why(&reply))),
        Err(Failure::NotSent(why) | Failure::Lost(why)) => Err(failed(&why)),
    }
}

/// Of an address that members name only the host counts.
fn path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(status: u16, body: &str) -> Result<(), Ended> {
        switched(Ok(Reply { status, body: body.into(), ..Reply::default() }))
    }

    #[test]
    fn the_answers_to_a_switchover_are_understood() {
        assert_eq!(outcome(200, "Successfully switched over to \"db-1\""), Ok(()));
        let blocked = outcome(412, "candidate name does not match with sync_standby");
        let expected = "412 Precondition Failed: candidate name does not match with sync_standby";
        assert_eq!(blocked, Err(Ended::Blocked(expected.into())));
        assert!(matches!(outcome(503, "Switchover failed"), Err(Ended::Blocked(_))));
        assert!(matches!(outcome(504, "Switchover status unknown"), Err(Ended::Unknown(_))));
        assert!(matches!(outcome(500, ""), Err(Ended::Unknown(_))));
        assert!(matches!(outcome(202, "Switchover scheduled"), Err(Ended::Unknown(_))));
        assert!(matches!(outcome(401, "no auth header received"), Err(Ended::Failed(_))));
        assert!(matches!(switched(Err(Failure::Lost(String::new()))), Err(Ended::Unknown(_))));
        assert!(matches!(switched(Err(Failure::NotSent(String::new()))), Err(Ended::Blocked(_))));
    }

    #[test]
    fn of_an_address_only_the_host_counts() {
        let url: Url = "http://10.0.0.4:8008/patroni?a=b".parse().unwrap();
        assert_eq!(path(&url, "switchover").as_str(), "http://10.0.0.4:8008/switchover");
    }
}
