//! The answer of `GET /patroni`: one member's own status, fresher than `/cluster`, which is as old as Patroni's last
//! loop.

use std::collections::BTreeSet;

use serde_json::Value;

use super::cluster::is_leaders_role;

/// A member's own status.
#[derive(Default, PartialEq, Eq, Debug)]
pub(super) struct PatroniStatus {
    role: String,
    pub(super) timeline: Option<u64>,
    /// The end of the member's WAL: written by a primary, received or replayed by a standby. `None` while PostgreSQL
    /// does not answer Patroni.
    pub(super) position: Option<u64>,
    /// The start time of the member's PostgreSQL.
    pub(super) started: Option<String>,
    /// The names of the members that stream from this member.
    senders: BTreeSet<String>,
    pub(super) version: Option<String>,
    /// The member's name; reported since 4.0.
    name: Option<String>,
}

impl PatroniStatus {
    pub(super) fn read(body: &str) -> Result<Self, String> {
        let said: Value =
            serde_json::from_str(body).map_err(|error| format!("Patroni's answer is not a status: {error}"))?;
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let Some(role) = text(&said["role"]) else { return Err("Patroni's answer has no role".to_owned()) };
        let xlog = &said["xlog"];
        let positions = ["location", "received_location", "replayed_location"].map(|name| xlog[name].as_u64());
        let senders = said["replication"].as_array().into_iter().flatten();
        let streaming = senders.filter(|sender| sender["state"] == "streaming");
        Ok(Self {
            role,
            timeline: said["timeline"].as_u64().filter(|timeline| *timeline > 0),
            position: positions.into_iter().flatten().max(),
            started: text(&said["postmaster_start_time"]),
            senders: streaming.filter_map(|sender| Some(sender["application_name"].as_str()?.to_lowercase())).collect(),
            version: text(&said["patroni"]["version"]),
            name: text(&said["patroni"]["name"]),
        })
    }

    /// Checks the name: at a wrongly advertised address another member answers.
    pub(super) fn is_of(&self, member: &str) -> bool {
        self.name.as_deref().is_none_or(|name| name == member)
    }

    pub(super) fn is_leader(&self) -> bool {
        is_leaders_role(&self.role)
    }

    /// Whether a member streams from this member; `None` while PostgreSQL does not answer Patroni.
    pub(super) fn sends_to(&self, member: &str) -> Option<bool> {
        self.position.map(|_| self.senders.contains(&member.to_lowercase()))
    }
}
