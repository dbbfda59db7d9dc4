//! `[[workload]]`: a workload on this VM.

use allclear_core::model::workload;
use core::time::Duration;
use std::collections::BTreeSet;

use super::hook::{self, CommandSettings, ConfiguredHook};
use super::listeners;
use super::reader::{Located, TomlTable};
use super::role::{self, RoleConfig};
use super::scalar;
use allclear_core::model::id::{GroupName, WorkloadName};
use allclear_core::model::state::WORKLOAD_LIMIT;
use allclear_core::model::workload::{Group, Phase};

/// The interval of `ready` checks for a workload with a `ready` hook, also outside of events.
const READY_INTERVAL: Duration = Duration::from_secs(10);
/// The interval of `check` hooks outside of events.
const CHECK_INTERVAL: Duration = Duration::from_hours(24);
/// The interval of requests for a workload's role.
const ROLE_EVERY: Duration = Duration::from_secs(5);

/// A workload with hooks in the configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfiguredWorkload {
    /// Unique on this VM.
    pub name: WorkloadName,
    pub group: Option<GroupName>,
    /// Names of workloads, on any VM, that are prepared before this workload; without a cycle in this file.
    pub after: Vec<WorkloadName>,
    /// `None`: the role is unknown, so the workload counts as primary.
    pub role: Option<RoleConfig>,
    /// The interval of its `ready` checks, also outside of events; `None` without a `ready` hook.
    pub ready_interval: Option<Duration>,
    /// The interval of its `check` hooks outside of events; `None` without a `check` hook.
    pub check_interval: Option<Duration>,
    /// Users that may connect under the workload's name, beside root and the replica's own user.
    pub allow_uids: Vec<u32>,
    /// In the order of the file.
    pub hooks: Vec<ConfiguredHook>,
}

impl ConfiguredWorkload {
    /// The part of the workload in the log; the targets of hooks stay in this process.
    pub fn registered(&self) -> workload::Workload {
        workload::Workload {
            name: self.name.clone(),
            group: self.group.clone(),
            after: self.after.clone(),
            hooks: self.hooks.iter().map(|hook| hook.registered.clone()).collect(),
            origin: workload::Origin::Configured,
            on_absent: workload::OnAbsent::Hold,
        }
    }
}

/// Reads all workloads; `None` if one lacks a required key. `groups` is `None` if a group has a mistake of its own.
pub(super) fn read_all(
    table: &mut TomlTable<'_>,
    groups: Option<&[(Group, Vec<u32>)]>,
) -> Option<Vec<ConfiguredWorkload>> {
    let read = table.tables("workload", read_workload);
    if read.len() > WORKLOAD_LIMIT {
        let message = format!(
            "`workload` is listed {} times: a replica has at most {WORKLOAD_LIMIT} workloads; remove workloads, or \
             prepare several with one hook",
            read.len()
        );
        table.mistake(&table.place_of("workload"), message);
    }
    table.refuse_repeats("workload", read.iter().flatten().map(|read| &read.name));
    let named: Vec<_> = read.iter().flatten().collect();
    refuse_circles(table, &named);
    // Without any `[[group]]` every group has the defaults.
    if let Some(groups) = groups.filter(|groups| !groups.is_empty()) {
        let known: Vec<&str> = groups.iter().map(|(group, _)| group.name.0.as_str()).collect();
        named.iter().filter_map(|read| read.group.as_ref()).for_each(|group| refuse_undefined(table, group, &known));
    }
    read.into_iter().map(|read| read?.workload).collect()
}

fn refuse_undefined(table: &TomlTable<'_>, group: &Located<String>, known: &[&str]) {
    if known.contains(&group.value.as_str()) {
        return;
    }
    let advice = match scalar::nearest(&group.value, known) {
        Some(near) => format!("did you mean {near:?}?"),
        None => format!("add a `[[group]]` of this name; the groups are {}", known.join(", ")),
    };
    table.mistake(
        &group.place,
        format!("`workload.group` {:?} is no group of this configuration: {advice}", group.value),
    );
}

/// The fields for comparing workloads, also present if a hook is wrong.
struct ReadWorkload {
    name: Located<String>,
    group: Option<Located<String>>,
    after: Vec<Located<String>>,
    workload: Option<ConfiguredWorkload>,
}

fn read_workload(table: &mut TomlTable<'_>) -> Option<ReadWorkload> {
    let name = table.required("name", scalar::name, "every workload needs its own name");
    let group = table.found("group", scalar::name);
    let after = table.list("after", scalar::name).unwrap_or_default();
    let source = table.table("role", role::read_source).flatten();
    let every = scalar::duration(Duration::from_millis(100)..=Duration::from_hours(1));
    let every = table.optional("role_every", every);
    if table.has("role_every") && !table.has("role") {
        let message = "`workload.role_every` has no effect without `role`";
        table.mistake(&table.place_of("role_every"), message);
    }
    let interval =
        table.optional("ready_interval", scalar::duration(Duration::from_millis(100)..=Duration::from_hours(1)));
    let checks =
        table.optional("check_interval", scalar::duration(Duration::from_secs(1)..=Duration::from_hours(7 * 24)));
    let allow_uids = listeners::read_uids(table);
    let settings = hook::read_command_settings(table);
    let hooks = table.tables("hook", |table| hook::read(table, &settings)).into_iter().collect::<Option<Vec<_>>>();
    refuse_repeated_names(table, hooks.iter().flatten());
    let mut interval_of = |phase: Phase, key: &'static str, given: Option<Duration>, usual| {
        let is_there = hooks.iter().flatten().any(|hook| hook.registered.phase == phase);
        if table.has(key) && hooks.is_some() && !is_there {
            let message = format!("`workload.{key}` has no effect without a hook of the phase {phase}");
            table.mistake(&table.place_of(key), message);
        }
        is_there.then(|| given.unwrap_or_else(|| table.default(key, usual)))
    };
    let ready_interval = interval_of(Phase::Ready, "ready_interval", interval, READY_INTERVAL);
    let check_interval = interval_of(Phase::Check, "check_interval", checks, CHECK_INTERVAL);
    let name = name?;
    let of_hooks = hooks.iter().flatten().find_map(|hook| hook.user.clone());
    let settings = CommandSettings { user: settings.user.or(of_hooks), ..settings };
    let workload = hooks.map(|hooks| ConfiguredWorkload {
        name: WorkloadName(name.value.clone()),
        group: group.as_ref().map(|group| GroupName(group.value.clone())),
        after: after.iter().map(|name| WorkloadName(name.value.clone())).collect(),
        role: source.map(|source| RoleConfig {
            source,
            every: every.unwrap_or_else(|| table.default("role_every", ROLE_EVERY)),
            settings,
        }),
        ready_interval,
        check_interval,
        allow_uids,
        hooks,
    });
    Some(ReadWorkload { name, group, after, workload })
}

/// Rejects two hooks with the same name in one phase, because the names must differ.
fn refuse_repeated_names<'a>(table: &TomlTable<'_>, hooks: impl Iterator<Item = &'a ConfiguredHook>) {
    let mut seen = BTreeSet::new();
    for workload::Hook { phase, name, .. } in hooks.map(|hook| &hook.registered) {
        let Some(name) = name else { continue };
        if !seen.insert((*phase, name)) {
            let message = format!(
                "`workload.hook.name` {name:?} is used twice in the phase {phase}: every hook needs its own name"
            );
            table.mistake(&table.place_of("hook"), message);
        }
    }
}

/// Rejects cycles: workloads in a cycle would wait until the time is up. Names of other VMs' workloads are ignored.
fn refuse_circles(table: &TomlTable<'_>, workloads: &[&ReadWorkload]) {
    let mut ready: Vec<&str> = Vec::new();
    let mut waiting: Vec<&ReadWorkload> = workloads.to_vec();
    let is_here = |name: &str| workloads.iter().any(|other| other.name.value == name);
    loop {
        let before = waiting.len();
        waiting.retain(|read| {
            let waits = read.after.iter().any(|name| is_here(&name.value) && !ready.contains(&name.value.as_str()));
            if !waits {
                ready.push(&read.name.value);
            }
            waits
        });
        if waiting.len() == before {
            break;
        }
    }
    for read in &waiting {
        let stuck = read.after.iter().filter(|name| waiting.iter().any(|other| other.name.value == name.value));
        for name in stuck {
            let message = format!(
                "`workload.after` of {} names {}, which directly or indirectly waits for itself or for this workload: \
                 remove the cycle",
                read.name.value, name.value
            );
            table.mistake(&name.place, message);
        }
    }
}
