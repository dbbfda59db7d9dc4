//! `[policy]`, `[[policy.rule]]` and `[[group]]`: the treatment of events, and the limits of groups.

use core::ops::RangeInclusive;
use core::time::Duration;

use super::listeners;
use super::reader::{Located, TomlTable};
use super::scalar;
use super::source::Value;
use super::window;
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::{GroupName, VmName};
use allclear_core::model::treatment::Action;
use allclear_core::model::workload::{Group, Phase};
use allclear_core::policy::{Foreign, Policy, Range, Rule};

const HOUR: Duration = Duration::from_hours(1);
const WEEK: Duration = Duration::from_hours(7 * 24);

pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Policy> {
    let up_to = |longest: Duration| scalar::duration(Duration::ZERO..=longest);
    let default = Policy::default();
    let policy = Policy {
        user_budget: table.or("user_budget", up_to(HOUR), default.user_budget),
        brief_freeze: table.or("brief_freeze", up_to(HOUR), default.brief_freeze),
        foreign: table.or("foreign", scalar::word(Foreign::NAMES, Foreign::parse), default.foreign),
        margin: table.or("margin", up_to(HOUR), default.margin),
        prepare_ahead: table.or("prepare_ahead", up_to(WEEK), default.prepare_ahead),
        give_back_after: table.or("give_back_after", up_to(HOUR), default.give_back_after),
        last_call: table.or("last_call", up_to(HOUR), default.last_call),
        ..default
    };
    let rules = table.tables("rule", read_rule);
    if policy.margin > policy.prepare_ahead {
        let (margin, ahead) = (policy.margin, policy.prepare_ahead);
        let (margin, ahead) = (humantime::format_duration(margin), humantime::format_duration(ahead));
        let message = format!(
            "`policy.margin` is {margin}, longer than `policy.prepare_ahead` ({ahead}): hooks would have to end \
             before their start"
        );
        table.mistake(&table.place_of(if table.has("margin") { "margin" } else { "prepare_ahead" }), message);
    }
    table.refuse_repeats("rule", rules.iter().flatten().map(|(name, _)| name));
    for (name, ahead) in rules.iter().flatten().filter_map(|(name, rule)| Some((name, rule.prepare_ahead?))) {
        if ahead < policy.margin {
            let margin = humantime::format_duration(policy.margin);
            let message = format!(
                "`policy.rule.prepare_ahead` of {:?} is shorter than `policy.margin` ({margin}): hooks would have to \
                 end before their start",
                name.value
            );
            table.mistake(&name.place, message);
        }
    }
    let rules = rules.into_iter().map(|rule| rule.map(|(_, rule)| rule)).collect::<Option<_>>()?;
    Some(Policy { rules, ..policy })
}

fn read_rule(table: &mut TomlTable<'_>) -> Option<(Located<String>, Rule)> {
    const BEFORE: &[&str] = &["checkpoint", "failover", "drain", "shutdown"];
    let before = |word: &str| Phase::parse(word).filter(|phase| BEFORE.contains(&phase.as_str()));
    let name = table.required("name", scalar::name, "allclear names the rule when it explains a decision");
    let kinds = table.list("type", kind);
    let sources = table.list("source", source);
    let resources = table.list("resources", scalar::name).unwrap_or_default();
    let duration = table.table("duration", read_range);
    let notice = table.table("notice", read_range);
    let word = scalar::word(Action::NAMES, Action::parse);
    let treatment = table.required("treatment", word, "write \"prepare\", \"approve\" or \"observe\"");
    let phases = table.list("phases", scalar::word(BEFORE, before));
    if table.is_empty("phases") {
        let message = "`policy.rule.phases` is empty: leave the key out for the phases of the event's type, or use \
                       the treatment approve";
        table.mistake(&table.place_of("phases"), message);
    }
    let budget = table.optional("budget", scalar::duration(Duration::ZERO..=WEEK));
    let prepare_ahead = table.optional("prepare_ahead", scalar::duration(Duration::ZERO..=WEEK));
    let window = table.table("window", window::read).flatten();
    if let Some(Located { value: treatment @ (Action::Approve | Action::Observe), .. }) = treatment {
        for key in ["phases", "budget", "prepare_ahead", "window"].into_iter().filter(|key| table.has(key)) {
            let word = treatment.as_str();
            let message = format!("`policy.rule.{key}` has no effect: the treatment {word:?} prepares nothing");
            table.mistake(&table.place_of(key), message);
        }
    }
    let name = name?;
    let rule = Rule {
        name: name.value.clone(),
        event_types: values(kinds.unwrap_or_default()),
        sources: values(sources.unwrap_or_default()),
        resources: resources.iter().map(|resource| VmName::new(&resource.value)).collect(),
        duration,
        notice,
        action: treatment?.value,
        phases: phases.map(values),
        budget,
        prepare_ahead,
        window,
    };
    Some((name, rule))
}

fn values<T>(found: Vec<Located<T>>) -> Vec<T> {
    found.into_iter().map(|found| found.value).collect()
}

fn read_range(table: &mut TomlTable<'_>) -> Range {
    const ANY: RangeInclusive<Duration> = Duration::ZERO..=WEEK;
    let range = Range {
        at_least: table.optional("at_least", scalar::duration(ANY)),
        below: table.optional("below", scalar::duration(ANY)),
    };
    if !table.has("at_least") && !table.has("below") {
        table.mistake_here("has no bound: write { below = \"30s\" }, { at_least = \"10s\" } or both");
    }
    if let (Some(at_least), Some(below)) = (range.at_least, range.below)
        && at_least >= below
    {
        table.mistake_here("matches nothing: `at_least` is not shorter than `below`");
    }
    range
}

/// Parses a type of event. Unknown types are accepted, since the platform adds types; likely misspellings are rejected.
pub(super) fn kind(value: &Value) -> Result<EventType, String> {
    let word = scalar::name(value)?;
    match (EventType::parse(&word), scalar::nearest(&word, EventType::KNOWN)) {
        (EventType::Other(_), Some(near)) => Err(format!("is {word:?}: did you mean {near:?}?")),
        (kind, _) => Ok(kind),
    }
}

fn source(value: &Value) -> Result<Source, String> {
    const KNOWN: &[&str] = &["Platform", "User"];
    scalar::word(KNOWN, |word| match Source::parse(word) {
        Source::Other(_) => None,
        known @ (Source::Platform | Source::User) => Some(known),
    })(value)
}

/// Reads the groups, each with the users that may join the group by connecting.
pub(super) fn read_groups(table: &mut TomlTable<'_>) -> Option<Vec<(Group, Vec<u32>)>> {
    let groups = table.tables("group", |table| {
        let name = table.required("name", scalar::name, "workloads refer to the group by its name");
        let max_unavailable = table.or("max_unavailable", scalar::number(1..=100), 1);
        let uids = listeners::read_uids(table);
        name.map(|name| (name.clone(), (Group { name: GroupName(name.value), max_unavailable }, uids)))
    });
    table.refuse_repeats("group", groups.iter().flatten().map(|(name, _)| name));
    groups.into_iter().map(|group| group.map(|(_, group)| group)).collect()
}
