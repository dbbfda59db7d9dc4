//! Requests to Patroni's REST API.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use super::cluster::{PatroniCluster, PatroniMember};
use super::names::MemberVms;
use super::status::PatroniStatus;
use super::view::PatroniView;
use crate::hooks::http::answer::why;
use crate::hooks::http::exchange;
use crate::hooks::http::facts::Facts;
use crate::hooks::http::server::HookServer;
use crate::http_client::{ExchangeError, Method, Reply, Url, parse_external};

const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// A member's status is optional; the wait is short.
const ASK_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct Api<'a> {
    pub(super) server: &'a HookServer,
    pub(super) facts: &'a Facts,
    pub(super) names: &'a MemberVms,
}

impl Api<'_> {
    /// The cluster, and the statuses of its members as far as needed and available.
    pub(super) async fn look(&self) -> Result<PatroniView, String> {
        let body = self.get(&self.server.url, "cluster", LOOK_WITHIN).await;
        let cluster = body.and_then(|body| PatroniCluster::read(&body));
        let cluster = cluster.map_err(|why| format!("the cluster cannot be read from Patroni: {why}"))?;
        let mut view = PatroniView { cluster, leader: None, others: BTreeMap::new() };
        let Ok(leader) = view.cluster.leader() else { return Ok(view) };
        view.leader = self.leaders_status(leader).await;
        let mut others = BTreeMap::new();
        for member in view.doubtful() {
            if let Some(status) = self.followers_status(member).await {
                others.insert(member.name.clone(), status);
            }
        }
        view.others = others;
        Ok(view)
    }

    /// A member's status, requested at the member's address in `/cluster`.
    pub(super) async fn status_of(&self, member: &PatroniMember) -> Result<PatroniStatus, String> {
        let url =
            self.url_of(member.api_url.as_deref()).ok_or("the address of the member in /cluster cannot be used")?;
        let status = PatroniStatus::read(&self.get(&url, "patroni", ASK_WITHIN).await?)?;
        if status.is_of(&member.name) { Ok(status) } else { Err("another member answers at this address".to_owned()) }
    }

    /// The status of a follower; a leader that answers at the follower's address is another member.
    pub(super) async fn followers_status(&self, member: &PatroniMember) -> Option<PatroniStatus> {
        self.status_of(member).await.ok().filter(|status| !status.is_leader())
    }

    /// The status of this hook's own Patroni.
    async fn own_status(&self) -> Result<PatroniStatus, String> {
        PatroniStatus::read(&self.get(&self.server.url, "patroni", ASK_WITHIN).await?)
    }

    async fn leaders_status(&self, leader: &PatroniMember) -> Option<PatroniStatus> {
        match self.status_of(leader).await {
            Ok(status) => Some(status),
            // The hook's own Patroni may be the leader's.
            Err(_) => self.own_status().await.ok().filter(|status| status.is_of(&leader.name)),
        }
        .filter(PatroniStatus::is_leader)
    }

    /// The configuration that all members share.
    pub(super) async fn settings(&self) -> Result<Value, String> {
        let body = self.get(&self.server.url, "config", LOOK_WITHIN).await?;
        serde_json::from_str(&body).map_err(|error| format!("Patroni's answer is not a configuration: {error}"))
    }

    /// Posts the switchover to the leader, or if unreachable to this hook's own Patroni.
    pub(super) async fn switch_over(
        &self,
        leaders_api: Option<&str>,
        leader: &str,
        candidate: &str,
    ) -> Result<Reply, ExchangeError> {
        let wanted = json!({ "leader": leader, "candidate": candidate });
        if let Some(url) = self.url_of(leaders_api) {
            match self.post_switchover(&url, &wanted, self.facts.time_left()).await {
                Err(ExchangeError::NotSent(_)) => {}
                answered => return answered,
            }
        }
        self.post_switchover(&self.server.url, &wanted, self.facts.time_left()).await
    }

    /// Whether a member would accept a switchover from here. The request names no leader, so every version rejects the
    /// request with 400 before anything else, and an unauthorized caller with 401 or 403 before that.
    pub(super) async fn may_switch_over(&self, base: &Url) -> Result<(), String> {
        let without_leader = json!({ "candidate": "no member: a check by allclear" });
        let reply =
            self.post_switchover(base, &without_leader, LOOK_WITHIN).await.map_err(ExchangeError::into_reason)?;
        if reply.status == 400 { Ok(()) } else { Err(refusal(&reply)) }
    }

    /// The address for requests to a member: the member's own address, if a login stays confidential there.
    pub(super) fn url_of(&self, api_url: Option<&str>) -> Option<Url> {
        let url = parse_external(api_url?).ok()?;
        (url.scheme() == self.server.url.scheme() && self.server.may_log_in_at(&url)).then_some(url)
    }

    async fn post_switchover(&self, base: &Url, wanted: &Value, patience: Duration) -> Result<Reply, ExchangeError> {
        let post = self.server.request(Method::POST, path(base, "switchover"));
        exchange(post.json(wanted), patience).await
    }

    async fn get(&self, base: &Url, name: &str, patience: Duration) -> Result<String, String> {
        let question = self.server.request(Method::GET, path(base, name));
        match exchange(question, patience.min(self.facts.time_left())).await {
            Ok(reply) if reply.status == 200 => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
            Ok(reply) => Err(refusal(&reply)),
            Err(failure) => Err(failure.into_reason()),
        }
    }
}

/// The reason of Patroni's refusal, with advice on authentication.
pub(super) fn refusal(reply: &Reply) -> String {
    let advice = match reply.status {
        401 => "; set `username` and `password_file` of the hook as in `restapi.authentication` of Patroni",
        403 => {
            "; set `cert` and `key` of the hook if Patroni requires a certificate, and check `restapi.allowlist` of \
             Patroni"
        }
        _ => "",
    };
    format!("{}{advice}", why(reply))
}

/// Of a member's address only the host and the port count.
fn path(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(path);
    url.set_query(None);
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_address_only_the_host_and_the_port_count() {
        let url: Url = "http://10.0.0.4:8008/patroni?a=b".parse().unwrap();
        assert_eq!(path(&url, "switchover").as_str(), "http://10.0.0.4:8008/switchover");
    }
}
