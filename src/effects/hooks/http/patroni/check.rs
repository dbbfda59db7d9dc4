//! Checks the requirements of a failover and a restore by Patroni: versions, members and their VMs, possible leaders,
//! the caller's rights, replication. All problems are collected. The check changes nothing: the only POST is a request
//! that every version refuses before any action.

use std::io::{self, Write as _};

use serde_json::Value;

use super::api::Api;
use super::cluster::{PatroniMember, is_true};
use super::view::PatroniView;
use crate::hooks::HookOutcome;
use crate::http_client::Url;
use allclear_core::model::id::VmName;

/// The first supported version.
const OLDEST: (u64, u64) = (2, 1);
/// Before this version, a standby cluster counted as synchronous by its setting, and had no synchronous standby to
/// switch to.
const NONE_SYNCHRONOUS_IN_STANDBY_CLUSTERS: (u64, u64) = (3, 2);

pub(super) async fn check(api: &Api<'_>) -> HookOutcome {
    let view = match api.look().await {
        Ok(view) => view,
        Err(why) => return HookOutcome::Failed(why),
    };
    let mut problems = Vec::new();
    match api.settings().await {
        Ok(settings) => {
            api.server.say("progress", mode(&view, &settings));
            problems.extend(of_settings(&view, &settings));
        }
        Err(why) => problems.push(format!("Patroni's configuration cannot be read: {why}")),
    }
    problems.extend(of_members(api, &view));
    problems.extend(of_followers(&view));
    for member in &view.cluster.members {
        problems.extend(of_access(api, member).await);
    }
    if let Err(why) = api.may_switch_over(&api.server.url).await {
        problems.push(format!("the Patroni of this hook would refuse a switchover: {why}"));
    }
    if problems.is_empty() {
        return HookOutcome::Done;
    }
    if problems.len() > 1 {
        // A reason is cut after some hundred letters.
        let _ = writeln!(io::stderr(), "{}", problems.join("\n"));
    }
    HookOutcome::Failed(problems.join("; "))
}

/// The kind of cluster and replication, for people.
fn mode(view: &PatroniView, settings: &Value) -> String {
    let replication = match &settings["synchronous_mode"] {
        Value::String(word) if word == "quorum" => "quorum commit",
        tag if is_on(tag) => "synchronous replication",
        _ => "asynchronous replication",
    };
    let kind = if is_true(&settings["standby_cluster"]) { "a standby cluster" } else { "a cluster" };
    let paused = if is_true(&view.cluster.pause) { ", paused" } else { "" };
    let version = view.leader.as_ref().and_then(|leader| leader.version.as_deref()).unwrap_or("of unknown version");
    format!("Patroni {version}: {kind} of {} with {replication}{paused}", view.cluster.members.len())
}

/// The truth value of a setting, by Patroni's rules.
fn is_on(value: &Value) -> bool {
    match value {
        Value::String(text) => ["on", "true", "yes", "1"].contains(&&*text.to_lowercase()),
        other => is_true(other),
    }
}

fn of_settings(view: &PatroniView, settings: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if let Some(planned) = view.cluster.scheduled_switchover.as_object() {
        let at = planned.get("at").and_then(Value::as_str).unwrap_or("some time");
        problems.push(format!(
            "a switchover is scheduled for {at}, and the switchover for an event would replace the scheduled one: \
             cancel the scheduled switchover with `patronictl flush`"
        ));
    }
    let wants_synchronous = is_on(&settings["synchronous_mode"]) || settings["synchronous_mode"] == "quorum";
    if is_true(&settings["standby_cluster"]) {
        let version = view.leader.as_ref().and_then(|leader| leader.version.as_deref()).unwrap_or_default();
        let heeds_it = numbers_of(version).is_some_and(|numbers| numbers < NONE_SYNCHRONOUS_IN_STANDBY_CLUSTERS);
        if wants_synchronous && heeds_it {
            problems.push(format!(
                "synchronous_mode is on in a standby cluster, and Patroni {version} refuses a switchover there: turn \
                 synchronous_mode off, or upgrade to 3.2 or later"
            ));
        }
    } else if wants_synchronous && !view.cluster.members.iter().any(PatroniMember::is_synchronous) {
        problems.push(
            "replication is configured as synchronous, and no standby is synchronous, so no standby could take over; \
             check `nosync` tags and pg_stat_replication"
                .to_owned(),
        );
    }
    problems
}

/// Problems of members, of their VMs, and of the configuration of both.
fn of_members(api: &Api<'_>, view: &PatroniView) -> Vec<String> {
    let names = api.names;
    let mut problems = Vec::new();
    let own = VmName::new(api.facts.text("vm"));
    if view.member_on(&own, names).is_none() {
        problems.push(format!("no member is on {own}: name each member and its VM in `members` of the hook"));
    }
    for member in view.cluster.members.iter().filter(|member| names.vm_of(&member.name).is_none()) {
        problems.push(super::names::missing(&member.name));
    }
    for (member, vm) in names.members() {
        let is_there = view.cluster.members.iter().any(|there| there.name.eq_ignore_ascii_case(member));
        if !is_there {
            problems
                .push(format!("`members` lists {member} on {vm}, and {member} is not a member of the Patroni cluster"));
        }
    }
    problems.extend(of_peers(api, view, &own));
    problems
}

/// Problems of members and the VMs of this workload, if these VMs are known: in a drill.
fn of_peers(api: &Api<'_>, view: &PatroniView, own: &VmName) -> Vec<String> {
    let told = |list: &str| api.facts.texts(list).map(VmName::new).collect::<Vec<_>>();
    let (peers, avoided) = (told("prefer_vms"), told("avoid_vms"));
    if peers.is_empty() {
        return Vec::new();
    }
    let members = || view.cluster.members.iter().filter_map(|member| Some((member, api.names.vm_of(&member.name)?)));
    let is_known = |vm: &VmName| vm == own || peers.contains(vm) || avoided.contains(vm);
    let strange = members().filter(|(_, vm)| !is_known(vm));
    let strange = strange.map(|(member, vm)| {
        format!("{} is on {vm}, and the replica of that VM does not have this workload", member.name)
    });
    let bare = peers.iter().filter(|vm| !members().any(|(_, on)| on == **vm));
    let bare = bare.map(|vm| format!("no member of the Patroni cluster is on {vm}, and {vm} has this workload"));
    strange.chain(bare).collect()
}

/// Problems of replication, and a missing candidate.
fn of_followers(view: &PatroniView) -> Vec<String> {
    let leader = match view.cluster.leader() {
        Ok(leader) => leader,
        Err(why) => return vec![why],
    };
    let mut problems = Vec::new();
    if view.leader.is_none() {
        problems.push(format!(
            "the leader {} does not answer GET /patroni at {}: after a failed switchover it would be unknown whether \
             writes stopped",
            leader.name,
            leader.api_url.as_deref().unwrap_or("no address")
        ));
    }
    let mut may_lead = 0;
    for member in view.cluster.followers(leader) {
        match view.follows(member, leader) {
            Ok(()) => may_lead += usize::from(!member.never_leads()),
            Err(why) => problems.push(why),
        }
    }
    if may_lead == 0 {
        problems.push(
            "no standby could take over now: a standby has to stream, without the tags `nofailover` and \
             `failover_priority: 0`"
                .to_owned(),
        );
    }
    problems
}

/// Problems of access to a member. Any member may be the leader at an event.
async fn of_access(api: &Api<'_>, member: &PatroniMember) -> Vec<String> {
    let name = &member.name;
    let Some(url) = member_url(api, member) else {
        let address = member.api_url.as_deref().unwrap_or("none");
        return vec![format!(
            "{name} has the address {address} in /cluster, and allclear does not use this address: {}",
            UNASKED
        )];
    };
    let mut problems = Vec::new();
    match api.status_of(member).await {
        Ok(status) => problems.extend(status.version.and_then(|version| too_old(name, &version))),
        Err(why) => problems.push(format!("{name} does not answer at {}: {why}", url.authority())),
    }
    if problems.is_empty()
        && let Err(why) = api.may_switch_over(&url).await
    {
        problems.push(format!("{name} would refuse a switchover: {why}"));
    }
    problems
}

const UNASKED: &str = "the scheme differs from `http` of the hook, or the credentials would be sent unencrypted";

fn member_url(api: &Api<'_>, member: &PatroniMember) -> Option<Url> {
    api.url_of(member.api_url.as_deref())
}

fn too_old(name: &str, version: &str) -> Option<String> {
    (numbers_of(version)? < OLDEST).then(|| format!("{name} runs Patroni {version}: 2.1 or later is needed"))
}

fn numbers_of(version: &str) -> Option<(u64, u64)> {
    let mut numbers = version.split('.').map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next().and_then(Result::ok).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_before_2_1_are_too_old() {
        for (version, is_old) in
            [("1.6.5", true), ("2.0.2", true), ("2.1.0", false), ("3.0.2", false), ("10.1", false), ("unknown", false)]
        {
            assert_eq!(too_old("db-0", version).is_some(), is_old, "{version}");
        }
    }
}
