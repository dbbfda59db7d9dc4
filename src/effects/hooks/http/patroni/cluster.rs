//! The answer of `GET /cluster`, with the terms of every version since 2.1.

use serde::Deserialize;
use serde_json::Value;

const MAX_MEMBERS: usize = 100;

#[derive(Deserialize)]
pub(super) struct PatroniCluster {
    pub(super) members: Vec<PatroniMember>,
    #[serde(default)]
    pub(super) pause: Value,
    #[serde(default)]
    pub(super) scheduled_switchover: Value,
}

#[derive(Deserialize)]
pub(super) struct PatroniMember {
    pub(super) name: String,
    #[serde(default)]
    role: String,
    #[serde(default)]
    pub(super) state: String,
    #[serde(default)]
    timeline: Value,
    /// Bytes, or a word for an unknown lag.
    #[serde(default)]
    lag: Value,
    pub(super) api_url: Option<String>,
    #[serde(default)]
    tags: Value,
}

impl PatroniCluster {
    pub(super) fn read(body: &str) -> Result<Self, String> {
        let cluster: Self =
            serde_json::from_str(body).map_err(|error| format!("Patroni's answer is not a cluster: {error}"))?;
        if cluster.members.len() > MAX_MEMBERS {
            return Err(format!("the Patroni cluster has more than {MAX_MEMBERS} members"));
        }
        Ok(cluster)
    }

    /// The cluster's leader. A member has a leader's role only while holding the leader key. The leader of a standby
    /// cluster streams itself.
    pub(super) fn leader(&self) -> Result<&PatroniMember, String> {
        let is_up = |member: &&PatroniMember| ["running", "streaming", "in archive recovery"].contains(&&*member.state);
        let leader = self.members.iter().find(|member| is_leaders_role(&member.role));
        leader.filter(is_up).ok_or_else(|| "the Patroni cluster has no leader at present".to_owned())
    }

    pub(super) fn followers<'a>(&'a self, leader: &'a PatroniMember) -> impl Iterator<Item = &'a PatroniMember> {
        self.members.iter().filter(move |member| member.name != leader.name)
    }
}

impl PatroniMember {
    pub(super) fn lag(&self) -> Option<u64> {
        self.lag.as_u64()
    }

    pub(super) fn timeline(&self) -> Option<u64> {
        self.timeline.as_u64()
    }

    pub(super) fn is_standby_leader(&self) -> bool {
        self.role == "standby_leader"
    }

    pub(super) fn is_synchronous(&self) -> bool {
        ["sync_standby", "quorum_standby"].contains(&&*self.role)
    }

    /// The member streams from another standby, named in this tag.
    pub(super) fn is_cascading(&self) -> bool {
        is_true(&self.tags["replicatefrom"])
    }

    /// By design the member lags by the WAL not archived yet.
    pub(super) fn lives_on_the_archive(&self) -> bool {
        self.state == "in archive recovery" && self.never_leads()
    }

    /// By Patroni's rules for tags: `nofailover` counts before `failover_priority`.
    pub(super) fn never_leads(&self) -> bool {
        match &self.tags["nofailover"] {
            Value::Null => integer(&self.tags["failover_priority"]).is_some_and(|priority| priority <= 0),
            tag => is_true(tag),
        }
    }
}

/// "master" and "primary" occur in `/patroni`, the other roles in `/cluster` as well.
pub(super) fn is_leaders_role(role: &str) -> bool {
    ["leader", "standby_leader", "primary", "master"].contains(&role)
}

/// Python's truth, by which Patroni reads most of its tags: any text but the empty one is true, "false" as well.
pub(super) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(bool) => *bool,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        Value::Object(map) => !map.is_empty(),
    }
}

fn integer(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| value.as_str()?.trim().parse().ok())
}
