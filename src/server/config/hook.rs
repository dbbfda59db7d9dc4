//! `[[workload.hook]]`: a hook of a workload.

use allclear_core::model::workload;
use core::time::Duration;

use super::env::{self, Env};
use super::http::{self, Http};
use super::policy;
use super::reader::{Located, TomlTable};
use super::scalar;
use allclear_core::model::hook_id::digest;
use allclear_core::model::id::VmName;
use allclear_core::model::workload::{OnFailure, Phase, RunsOn};

const DAY: Duration = Duration::from_hours(24);

/// The target of a hook's call.
#[derive(Clone, PartialEq, Debug)]
pub enum HookTarget {
    /// A program, by its absolute path or its bare name, and its arguments, run without a shell; never empty.
    Command(Vec<String>),
    /// An address for POST requests.
    Http(Http),
    /// Patroni's REST API, and Patroni's member names with their VMs where the names differ.
    Patroni { api: Http, members: Vec<(String, String)> },
}

/// A hook of a workload for one phase.
#[derive(Clone, PartialEq, Debug)]
pub struct ConfiguredHook {
    /// The part of the hook in the log.
    pub registered: workload::Hook,
    pub run: HookTarget,
    /// Checks whether the hook is done.
    pub confirm: Option<HookTarget>,
    /// Undoes an unfinished run.
    pub undo: Option<HookTarget>,
    /// The user of the hook's commands when the replica runs as root.
    pub user: Option<String>,
    /// Variables added to the environment of the hook's commands.
    pub env: Env,
}

/// The user and the variables of a workload's commands; a hook may have its own.
#[derive(Clone, PartialEq, Debug)]
pub struct CommandSettings {
    /// The user when the replica runs as root.
    pub user: Option<String>,
    pub env: Env,
}

pub(super) fn read_command_settings(table: &mut TomlTable<'_>) -> CommandSettings {
    CommandSettings { user: table.optional("user", scalar::name), env: env::read(table) }
}

pub(super) fn read(table: &mut TomlTable<'_>, shared: &CommandSettings) -> Option<ConfiguredHook> {
    let up_to_a_day = |shortest: u64| scalar::duration(Duration::from_millis(shortest)..=DAY);
    let why = "write check, checkpoint, failover, drain, shutdown, restore or ready";
    let phase = table.required("phase", scalar::word(Phase::NAMES, Phase::parse), why);
    let name = table.optional("name", scalar::hook_name);
    let command = table.optional("command", scalar::command).map(HookTarget::Command);
    let http = http::read(table).map(HookTarget::Http);
    let neither = "has nothing to run: add `command = [\"/path/to/program\"]` or `http = \"http://…\"`";
    let run = table.one_of(("command", command), ("http", http), neither);
    let patroni = read_adapter(table, phase.as_ref().map(|phase| phase.value), run.as_ref());
    let asked = read_way(table, "confirm");
    let is_failover = phase.as_ref().is_some_and(|phase| phase.value == Phase::Failover);
    let confirm = if patroni.is_some() { patroni.clone().filter(|_| is_failover) } else { asked };
    let undo = read_way(table, "undo");
    let checks = phase.as_ref().is_some_and(|phase| phase.value == Phase::Check);
    for key in ["confirm", "undo"].into_iter().filter(|key| checks && table.has(key)) {
        let message = format!("`{}.{key}` has no effect: a check changes nothing", table.path());
        table.mistake(&table.place_of(key), message);
    }
    let own = read_command_settings(table);
    let (user, env) = (own.user.or_else(|| shared.user.clone()), own.env.with_defaults(&shared.env));
    let registered = workload::Hook {
        timeout: table.or("timeout", up_to_a_day(1), Duration::from_mins(1)),
        max_attempts: table.or("attempts", scalar::number(1..=100), 2),
        on_failure: table.or("on_failure", scalar::word(OnFailure::NAMES, OnFailure::parse), OnFailure::Hold),
        runs_on: table.or("runs_on", scalar::word(RunsOn::NAMES, RunsOn::parse), RunsOn::Affected),
        can_confirm: confirm.is_some(),
        can_undo: undo.is_some(),
        can_dry_run: table.or("dry_run", scalar::boolean, checks) || checks,
        min_freeze: table.optional("min_freeze", up_to_a_day(0)),
        fresh_for: table.optional("fresh_for", up_to_a_day(0)),
        optional_if_short: table.or("optional_if_short", scalar::boolean, false),
        worst: table.optional("worst", up_to_a_day(1)),
        expected: table.optional("expected", up_to_a_day(1)),
        exclusive: table.or("exclusive", scalar::boolean, false),
        event_types: table.list("type", policy::kind).unwrap_or_default().into_iter().map(|kind| kind.value).collect(),
        name,
        command_digest: 0,
        // A missing phase must not keep the other keys from being read.
        phase: phase?.value,
    };
    if registered.fresh_for.is_some() && confirm.is_none() && !table.has("confirm") {
        let message = "`workload.hook.fresh_for` has no effect without `confirm`: add `confirm`, or remove the key";
        table.mistake(&table.place_of("fresh_for"), message);
    }
    let run = patroni.or(run)?;
    let registered = workload::Hook { command_digest: digest_of(&run, user.as_deref(), &env), ..registered };
    Some(ConfiguredHook { registered, run, confirm, undo, user, env })
}

/// A digest of the hook's command, user and variables. Of variables only printable values count. The paths of secrets
/// and certificates do not count: these are replaced from time to time, and are not in the log.
fn digest_of(run: &HookTarget, user: Option<&str>, env: &Env) -> u64 {
    let (how, words) = match run {
        HookTarget::Command(argv) => ("command", argv.iter().map(String::as_str).collect()),
        HookTarget::Http(http) => ("http", vec![http.url.as_str()]),
        HookTarget::Patroni { api, members } => {
            let members = members.iter().flat_map(|(member, vm)| [member.as_str(), vm]);
            ("patroni", [api.url.as_str()].into_iter().chain(members).collect())
        }
    };
    let known = env.for_people().flat_map(|(name, value)| [name, value.unwrap_or_default()]);
    digest([how].into_iter().chain(words).chain(["as", user.unwrap_or_default()]).chain(known))
}

/// Reads a program as a list, or an address as a table.
fn read_way(table: &mut TomlTable<'_>, key: &'static str) -> Option<HookTarget> {
    if table.is_table(key) {
        return table
            .table(key, |way| http::required(way, "write the address for the request"))
            .flatten()
            .map(HookTarget::Http);
    }
    table.optional(key, scalar::command_or_advice).map(HookTarget::Command)
}

/// Reads the adapter and combines the adapter with the hook's address.
fn read_adapter(table: &mut TomlTable<'_>, phase: Option<Phase>, run: Option<&HookTarget>) -> Option<HookTarget> {
    const KNOWN: &[&str] = &["patroni"];
    let adapter = table.optional("adapter", scalar::word(KNOWN, |word| (word == "patroni").then(|| word.to_owned())));
    let members = read_members(table);
    if table.has("members") && !table.has("adapter") {
        let message = format!("`{}.members` has no effect without `adapter = \"patroni\"`", table.path());
        table.mistake(&table.place_of("members"), message);
    }
    adapter?;
    let place = table.place_of("adapter");
    let refuse = |why: &str| table.mistake(&place, format!("`{}.adapter` {why}", table.path()));
    if !table.has("http") {
        refuse("needs `http`, the address of the REST API of this VM's Patroni, as \"http://127.0.0.1:8008\"");
    }
    if phase.is_some_and(|phase| !matches!(phase, Phase::Check | Phase::Failover | Phase::Restore | Phase::Ready)) {
        refuse("\"patroni\" is for the phases check, failover, restore and ready");
    }
    for key in ["confirm", "undo"].into_iter().filter(|key| table.has(key)) {
        let message = format!("`{}.{key}` has no effect: the adapter asks Patroni", table.path());
        table.mistake(&table.place_of(key), message);
    }
    let Some(HookTarget::Http(api)) = run else { return None };
    Some(HookTarget::Patroni { api: api.clone(), members })
}

/// Reads Patroni's member names, each with its VM.
fn read_members(table: &mut TomlTable<'_>) -> Vec<(String, String)> {
    let entries: Vec<(Located<String>, Option<String>)> = table.entries("members", scalar::name).unwrap_or_default();
    let mut members: Vec<(String, String)> = Vec::new();
    for (member, vm) in entries {
        let Some(vm) = vm else { continue };
        let twice = |what: &str| table.mistake(&member.place, format!("`{}.members` names {what} twice", table.path()));
        if members.iter().any(|(known, _)| known.eq_ignore_ascii_case(&member.value)) {
            twice(&format!("the member {}", member.value));
        }
        if members.iter().any(|(_, known)| VmName::new(known) == VmName::new(&vm)) {
            twice(&format!("the VM {vm}"));
        }
        members.push((member.value, vm));
    }
    if table.is_empty("members") {
        let message = format!(
            "`{}.members` is empty: leave the key out if the members have the names of their VMs",
            table.path()
        );
        table.mistake(&table.place_of("members"), message);
    }
    members
}
