//! Reads an untrusted registration of a workload. Every mistake is reported at once, with its place.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::message::{self, MAX_ATTEMPT_BYTES};
use crate::hooks::HookOutcome;
use crate::hooks::session::{Hello, MAX_KNOWN};
use allclear_core::model::document::EventType;
use allclear_core::model::hook_id::is_hook_name;
use allclear_core::model::id::{GroupName, WorkloadName};
use allclear_core::model::workload::{Hook, OnAbsent, OnFailure, Origin, Phase, Role, RunsOn, Workload};
use allclear_core::ownership::Grants;
use allclear_wire::pb::allclear::workload::v1 as pb;

/// The protocol version of this replica.
pub(super) const VERSION: u32 = 1;
const MAX_NAME_BYTES: usize = 63;
const MAX_HOOKS: usize = 32;
const MAX_AFTER: usize = 32;
const MAX_KINDS: usize = 32;
const MAX_ATTEMPTS: u32 = 100;
const LEASE: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_mins(5);
const LEASE_LEFT_OUT: Duration = Duration::from_secs(10);
const RETAIN: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_hours(24 * 365);
const TIMEOUT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_hours(24);
const TIMEOUT_LEFT_OUT: Duration = Duration::from_mins(1);
const SPAN: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_hours(24);
/// The limit of reported mistakes; a longer list does not help.
const MAX_MISTAKES: usize = 50;

/// The mistakes, each with its place.
#[derive(Default)]
struct HelloErrors(Vec<String>);

impl HelloErrors {
    fn add(&mut self, place: &dyn Display, what: &dyn Display) {
        if self.0.len() < MAX_MISTAKES {
            self.0.push(format!("{place}: {what}"));
        }
    }

    fn count(&mut self, place: &str, count: usize, most: usize) {
        if count > most {
            self.add(&place, &format!("{count} entries are given; the limit is {most}"));
        }
    }

    fn name(&mut self, place: &dyn Display, given: &str) {
        if !is_name(given) {
            let rule = format!("1 to {MAX_NAME_BYTES} letters, digits, `-`, `_` and `.`");
            self.add(place, &format!("{:?} of {} bytes is not a name: {rule}", shortened(given), given.len()));
        }
    }

    fn span(&mut self, place: &dyn Display, ms: Option<u64>, bounds: &RangeInclusive<Duration>) -> Option<Duration> {
        let span = Duration::from_millis(ms?);
        if !bounds.contains(&span) {
            let (least, most) = (bounds.start().as_millis(), bounds.end().as_millis());
            self.add(place, &format!("{} is out of range: from {least} to {most}", span.as_millis()));
        }
        Some(span)
    }

    /// Adds a value of an enum that this version does not know.
    fn unknown(&mut self, place: &dyn Display, number: i32) {
        self.add(place, &format!("this version does not know the value {number}"));
    }
}

/// True for a valid workload name; also used for a name outside of a greeting.
pub(super) fn is_name(given: &str) -> bool {
    (1..=MAX_NAME_BYTES).contains(&given.len())
        && given.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

fn shortened(given: &str) -> String {
    given.chars().take(MAX_NAME_BYTES).collect()
}

/// The greeting of a user's workload, or every mistake in it.
pub(super) fn read(hello: pb::Hello, owner: u32, polls: bool) -> Result<Hello, String> {
    let mut mistakes = HelloErrors::default();
    if !hello.versions.contains(&VERSION) {
        mistakes.add(&"versions", &format!("this replica needs version {VERSION}"));
    }
    mistakes.name(&"workload", &hello.workload);
    if let Some(group) = &hello.group {
        mistakes.name(&"group", group);
    }
    mistakes.name(&"boot", &hello.boot);
    mistakes.count("after", hello.after.len(), MAX_AFTER);
    for (place, name) in hello.after.iter().take(MAX_AFTER).enumerate() {
        mistakes.name(&format!("after[{place}]"), name);
        if *name == hello.workload {
            mistakes.add(&format!("after[{place}]"), &"a workload cannot wait for itself");
        }
    }
    mistakes.count("hooks", hello.hooks.len(), MAX_HOOKS);
    let hooks = hello.hooks.iter().take(MAX_HOOKS).enumerate();
    let hooks: Vec<_> = hooks.filter_map(|(place, given)| hook(place, given, &mut mistakes)).collect();
    let mut names = BTreeSet::new();
    for (place, hook) in hooks.iter().enumerate() {
        if hook.name.is_some() && !names.insert((hook.phase, &hook.name)) {
            mistakes.add(&format!("hooks[{place}].name"), &"another hook of the phase has this name");
        }
    }
    let lease = mistakes.span(&"lease_ms", hello.lease_ms, &LEASE).unwrap_or(LEASE_LEFT_OUT);
    let retain = mistakes.span(&"retain_ms", hello.retain_ms, &RETAIN);
    let on_absent = on_absent(hello.on_absent, &mut mistakes);
    let role = role(hello.role).unwrap_or_else(|| {
        mistakes.unknown(&"role", hello.role);
        None
    });
    let known = known(hello.known, &mut mistakes);
    if !mistakes.0.is_empty() {
        return Err(mistakes.0.join("; "));
    }
    let workload = Workload {
        name: WorkloadName(hello.workload),
        group: hello.group.map(GroupName),
        after: hello.after.into_iter().map(WorkloadName).collect(),
        hooks,
        origin: Origin::Session { owner },
        on_absent,
    };
    Ok(Hello { workload, boot: hello.boot, lease, retain, role: role.unwrap_or_default(), known, polls })
}

fn hook(place: usize, given: &pb::Hook, mistakes: &mut HelloErrors) -> Option<Hook> {
    let at = |key: &str| format!("hooks[{place}].{key}");
    let phase = match pb::Phase::try_from(given.phase) {
        Ok(pb::Phase::Check) => Some(Phase::Check),
        Ok(pb::Phase::Checkpoint) => Some(Phase::Checkpoint),
        Ok(pb::Phase::Failover) => Some(Phase::Failover),
        Ok(pb::Phase::Drain) => Some(Phase::Drain),
        Ok(pb::Phase::Shutdown) => Some(Phase::Shutdown),
        Ok(pb::Phase::Restore) => Some(Phase::Restore),
        Ok(pb::Phase::Ready) => Some(Phase::Ready),
        Ok(pb::Phase::Unspecified) => {
            mistakes.add(&at("phase"), &"the field is missing");
            None
        }
        Err(_) => {
            mistakes.unknown(&at("phase"), given.phase);
            None
        }
    };
    let on_failure = match pb::OnFailure::try_from(given.on_failure) {
        Ok(pb::OnFailure::Unspecified | pb::OnFailure::Hold) => OnFailure::Hold,
        Ok(pb::OnFailure::Continue) => OnFailure::Continue,
        Err(_) => {
            mistakes.unknown(&at("on_failure"), given.on_failure);
            OnFailure::Hold
        }
    };
    let runs_on = match pb::RunsOn::try_from(given.runs_on) {
        Ok(pb::RunsOn::Unspecified | pb::RunsOn::Affected) => RunsOn::Affected,
        Ok(pb::RunsOn::Peer) => RunsOn::Peer,
        Ok(pb::RunsOn::Any) => RunsOn::Any,
        Err(_) => {
            mistakes.unknown(&at("runs_on"), given.runs_on);
            RunsOn::Affected
        }
    };
    let attempts = given.attempts.unwrap_or(2);
    if !(1..=MAX_ATTEMPTS).contains(&attempts) {
        mistakes.add(&at("attempts"), &format!("{attempts} is out of range: from 1 to {MAX_ATTEMPTS}"));
    }
    mistakes.count(&at("event_types"), given.event_types.len(), MAX_KINDS);
    for (number, kind) in given.event_types.iter().take(MAX_KINDS).enumerate() {
        mistakes.name(&at(&format!("event_types[{number}]")), kind);
    }
    if let Some(name) = given.name.as_ref().filter(|name| !is_hook_name(name)) {
        let message =
            format!("{:?} is not a name: 1 to 64 letters, digits, - or _, and not only digits", shortened(name));
        mistakes.add(&at("name"), &message);
    }
    Some(Hook {
        phase: phase?,
        name: given.name.clone(),
        command_digest: 0,
        timeout: mistakes.span(&at("timeout_ms"), given.timeout_ms, &TIMEOUT).unwrap_or(TIMEOUT_LEFT_OUT),
        max_attempts: attempts,
        on_failure,
        runs_on,
        can_confirm: given.can_confirm,
        can_undo: given.can_undo,
        // A check changes nothing.
        can_dry_run: given.can_dry_run || phase == Some(Phase::Check),
        min_freeze: mistakes.span(&at("min_freeze_ms"), given.min_freeze_ms, &SPAN),
        fresh_for: mistakes.span(&at("fresh_for_ms"), given.fresh_for_ms, &SPAN),
        optional_if_short: given.optional_if_short,
        worst: mistakes.span(&at("worst_ms"), given.worst_ms, &SPAN),
        expected: None,
        exclusive: given.exclusive,
        event_types: given.event_types.iter().map(|word| EventType::parse(word)).collect(),
    })
}

fn on_absent(number: i32, mistakes: &mut HelloErrors) -> OnAbsent {
    match pb::OnAbsent::try_from(number) {
        Ok(pb::OnAbsent::Unspecified | pb::OnAbsent::Hold) => OnAbsent::Hold,
        Ok(pb::OnAbsent::Skip) => OnAbsent::Skip,
        Ok(pb::OnAbsent::Command) => OnAbsent::Command,
        Err(_) => {
            mistakes.unknown(&"on_absent", number);
            OnAbsent::Hold
        }
    }
}

/// `Some(None)`: no role is given. `None`: a role that this version does not know.
#[expect(clippy::option_option, reason = "what is left out differs from what is not understood")]
pub(super) fn role(number: i32) -> Option<Option<Role>> {
    Some(match pb::Role::try_from(number).ok()? {
        pb::Role::Unspecified => None,
        pb::Role::Primary => Some(Role::Primary),
        pb::Role::Replica => Some(Role::Replica),
    })
}

fn known(given: Vec<pb::Known>, mistakes: &mut HelloErrors) -> BTreeMap<String, Option<HookOutcome>> {
    mistakes.count("known", given.len(), MAX_KNOWN);
    let mut known = BTreeMap::new();
    for (place, pb::Known { attempt, outcome }) in given.into_iter().take(MAX_KNOWN).enumerate() {
        if !(1..=MAX_ATTEMPT_BYTES).contains(&attempt.len()) {
            mistakes
                .add(&format!("known[{place}].attempt"), &format!("an attempt id has 1 to {MAX_ATTEMPT_BYTES} bytes"));
        }
        match outcome.map(message::ended) {
            Some(None) => mistakes.add(&format!("known[{place}].outcome"), &"this version does not know the outcome"),
            // Without an outcome the attempt is still running.
            outcome => _ = known.insert(attempt, outcome.flatten()),
        }
    }
    known
}

/// Warnings about an accepted registration.
pub(super) fn odd(workload: &Workload, configured: &[Workload], grants: &Grants) -> Vec<pb::Problem> {
    let mut problems = Vec::new();
    let mut tell = |place: Option<String>, message: &str| {
        problems.push(pb::Problem { place, message: message.to_owned() });
    };
    if workload.hooks.is_empty() {
        tell(
            Some("hooks".to_owned()),
            "the workload has no hooks: allclear prepares nothing, and events do not wait for the workload",
        );
    }
    for (place, hook) in workload.hooks.iter().enumerate() {
        for kind in hook.event_types.iter().filter(|kind| matches!(kind, EventType::Other(_))) {
            let message = format!("allclear knows no event type {kind}: if Azure has none either, the hook never runs");
            tell(Some(format!("hooks[{place}].event_types")), &message);
        }
        if hook.fresh_for.is_some() && !hook.can_confirm {
            tell(Some(format!("hooks[{place}].fresh_for_ms")), "the field has no effect without `can_confirm`");
        }
        if hook.phase == Phase::Failover && !hook.can_confirm {
            let message = "a failover hook without `can_confirm` counts as failed when its outcome is unknown";
            tell(Some(format!("hooks[{place}].can_confirm")), message);
        }
    }
    let stands_in = configured.iter().any(|other| other.name == workload.name);
    // A workload that the configuration itself leaves without a group is no mistake.
    if workload.group.is_none() && !grants.groups.is_empty() && !stands_in {
        let names: Vec<_> = grants.groups.keys().map(|name| name.0.as_str()).collect();
        let message = format!(
            "no group, although the configuration has groups ({}): its members are not limited, and a failover gets no \
             members",
            names.join(", ")
        );
        tell(Some("group".to_owned()), &message);
    }
    if workload.on_absent == OnAbsent::Command && !stands_in {
        let message = format!("the configuration of this replica has no workload {} as a fallback", workload.name);
        tell(Some("on_absent".to_owned()), &message);
    }
    if workload.on_absent != OnAbsent::Command && stands_in {
        let message = format!(
            "the hooks of the configured workload {} do not run while this registration lasts: with \
             `ON_ABSENT_COMMAND` they run while the workload is disconnected",
            workload.name
        );
        tell(Some("workload".to_owned()), &message);
    }
    problems
}

#[cfg(test)]
mod tests;
