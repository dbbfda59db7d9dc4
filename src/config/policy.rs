//! `[policy]`, `[[policy.rule]]` and `[[group]]`: what is to be done with an event, and how much at once.

use core::ops::RangeInclusive;
use core::time::Duration;

use super::reader::{Found, Table};
use super::scalar;
use super::written::Value;
use crate::machine::document::{Kind, Source};
use crate::machine::id::{GroupName, VmName};
use crate::machine::workload::Phase;

const HOUR: Duration = Duration::from_hours(1);
const WEEK: Duration = Duration::from_hours(7 * 24);

/// How events are treated (`behaviour.md` 4 and 5).
#[derive(Clone, PartialEq, Debug)]
pub struct Policy {
    /// For preparing what a user initiated.
    pub user_budget: Duration,
    /// Freezes known to be shorter are prepared for only by hooks that ask for it.
    pub brief_freeze: Duration,
    /// Events that name no member of this cluster.
    pub foreign: Foreign,
    /// Hooks end this long before NotBefore.
    pub margin: Duration,
    /// Preparation starts this long before NotBefore.
    pub prepare_ahead: Duration,
    /// How long a workload's `ready` is asked after its `restore`.
    pub restore_timeout: Duration,
    /// The first that matches wins; where none does, the defaults decide.
    pub rules: Vec<Rule>,
}

/// What is done with events that name no member of this cluster.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Foreign {
    Observe,
    /// User-initiated ones are approved.
    ApproveUser,
}

impl Foreign {
    pub const WORDS: &'static [&'static str] = &["observe", "approve-user"];

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "observe" => Some(Self::Observe),
            "approve-user" => Some(Self::ApproveUser),
            _ => None,
        }
    }

    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::ApproveUser => "approve-user",
        }
    }
}

/// What is done with an event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Treatment {
    Prepare,
    Approve,
    Observe,
}

impl Treatment {
    pub const WORDS: &'static [&'static str] = &["prepare", "approve", "observe"];

    pub fn from_word(word: &str) -> Option<Self> {
        match word {
            "prepare" => Some(Self::Prepare),
            "approve" => Some(Self::Approve),
            "observe" => Some(Self::Observe),
            _ => None,
        }
    }

    pub const fn as_word(self) -> &'static str {
        match self {
            Self::Prepare => "prepare",
            Self::Approve => "approve",
            Self::Observe => "observe",
        }
    }
}

/// What is left out matches everything.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    pub name: String,
    /// Empty: any.
    pub kinds: Vec<Kind>,
    /// Empty: any.
    pub sources: Vec<Source>,
    /// Empty: any; else the event names at least one of them.
    pub resources: Vec<VmName>,
    /// The expected interruption; an unknown one matches no span.
    pub duration: Option<Span>,
    /// From first sight to NotBefore; an unknown one matches no span.
    pub notice: Option<Span>,
    pub treatment: Treatment,
    /// `None`: the default phases of the event's type.
    pub phases: Option<Vec<Phase>>,
    /// `None`: until NotBefore.
    pub budget: Option<Duration>,
}

/// From `at_least` up to, but without, `below`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub at_least: Option<Duration>,
    pub below: Option<Duration>,
}

/// `[[group]]`. A group that no table names may lose one member at once.
#[derive(Clone, PartialEq, Debug)]
pub struct Group {
    pub name: GroupName,
    /// At least 1.
    pub max_unavailable: u32,
}

pub(super) fn read(table: &mut Table<'_>) -> Option<Policy> {
    let up_to = |longest: Duration| scalar::duration(Duration::ZERO..=longest);
    let policy = Policy {
        user_budget: table.or("user_budget", up_to(HOUR), Duration::from_mins(2)),
        brief_freeze: table.or("brief_freeze", up_to(HOUR), Duration::from_secs(9)),
        foreign: table.or("foreign", scalar::word(Foreign::WORDS, Foreign::from_word), Foreign::Observe),
        margin: table.or("margin", up_to(HOUR), Duration::from_secs(5)),
        prepare_ahead: table.or("prepare_ahead", up_to(WEEK), Duration::from_mins(15)),
        restore_timeout: table.or("restore_timeout", up_to(24 * HOUR), Duration::from_mins(10)),
        rules: Vec::new(),
    };
    let rules = table.tables("rule", read_rule);
    if policy.margin > policy.prepare_ahead {
        let (margin, ahead) = (policy.margin, policy.prepare_ahead);
        let (margin, ahead) = (humantime::format_duration(margin), humantime::format_duration(ahead));
        let message = format!(
            "`policy.margin` is {margin}, longer than `policy.prepare_ahead` ({ahead}): hooks would have to end before \
             they start"
        );
        table.mistake(&table.place_of(if table.has("margin") { "margin" } else { "prepare_ahead" }), message);
    }
    table.refuse_repeats("rule", rules.iter().flatten().map(|(name, _)| name));
    let rules = rules.into_iter().map(|rule| rule.map(|(_, rule)| rule)).collect::<Option<_>>()?;
    Some(Policy { rules, ..policy })
}

fn read_rule(table: &mut Table<'_>) -> Option<(Found<String>, Rule)> {
    const BEFORE: &[&str] = &["checkpoint", "failover", "drain", "shutdown"];
    let before = |word: &str| Phase::from_word(word).filter(|phase| BEFORE.contains(&phase.as_word()));
    let name = table.required("name", scalar::name, "decisions are explained by it");
    let kinds = table.list("type", kind);
    let sources = table.list("source", source);
    let resources = table.list("resources", scalar::name).unwrap_or_default();
    let duration = table.table("duration", read_span);
    let notice = table.table("notice", read_span);
    let word = scalar::word(Treatment::WORDS, Treatment::from_word);
    let treatment = table.required("treatment", word, "write \"prepare\", \"approve\" or \"observe\"");
    let phases = table.list("phases", scalar::word(BEFORE, before));
    if table.is_empty("phases") {
        let message = "`policy.rule.phases` is empty: leave it out for the phases of the event's type, or approve";
        table.mistake(&table.place_of("phases"), message);
    }
    let budget = table.optional("budget", scalar::duration(Duration::ZERO..=WEEK));
    if let Some(Found { value: treatment @ (Treatment::Approve | Treatment::Observe), .. }) = treatment {
        for key in ["phases", "budget"].into_iter().filter(|key| table.has(key)) {
            let word = treatment.as_word();
            let message = format!("`policy.rule.{key}` means nothing here: treatment {word:?} prepares nothing");
            table.mistake(&table.place_of(key), message);
        }
    }
    let name = name?;
    let rule = Rule {
        name: name.value.clone(),
        kinds: values(kinds.unwrap_or_default()),
        sources: values(sources.unwrap_or_default()),
        resources: resources.iter().map(|resource| VmName::new(&resource.value)).collect(),
        duration,
        notice,
        treatment: treatment?.value,
        phases: phases.map(values),
        budget,
    };
    Some((name, rule))
}

fn values<T>(found: Vec<Found<T>>) -> Vec<T> {
    found.into_iter().map(|found| found.value).collect()
}

fn read_span(table: &mut Table<'_>) -> Span {
    const ANY: RangeInclusive<Duration> = Duration::ZERO..=WEEK;
    let span = Span {
        at_least: table.optional("at_least", scalar::duration(ANY)),
        below: table.optional("below", scalar::duration(ANY)),
    };
    if !table.has("at_least") && !table.has("below") {
        table.mistake_here("names no bound: write { below = \"30s\" }, { at_least = \"10s\" } or both");
    }
    if let (Some(at_least), Some(below)) = (span.at_least, span.below)
        && at_least >= below
    {
        table.mistake_here("matches nothing: `at_least` is not shorter than `below`");
    }
    span
}

/// A type nobody knows yet may be named, for the platform adds some; a slip of the pen may not.
fn kind(value: &Value) -> Result<Kind, String> {
    const KNOWN: &[&str] = &["Freeze", "Reboot", "Redeploy", "Preempt", "Terminate"];
    let word = scalar::name(value)?;
    match (Kind::from_word(&word), scalar::nearest(&word, KNOWN)) {
        (Kind::Other(_), Some(near)) => Err(format!("is {word:?}: did you mean {near:?}?")),
        (kind, _) => Ok(kind),
    }
}

fn source(value: &Value) -> Result<Source, String> {
    const KNOWN: &[&str] = &["Platform", "User"];
    scalar::word(KNOWN, |word| match Source::from_word(word) {
        Source::Other(_) => None,
        known @ (Source::Platform | Source::User) => Some(known),
    })(value)
}

pub(super) fn read_groups(table: &mut Table<'_>) -> Option<Vec<Group>> {
    let groups = table.tables("group", |table| {
        let name = table.required("name", scalar::name, "workloads name their group by it");
        let max_unavailable = table.or("max_unavailable", scalar::number(1..=100), 1);
        name.map(|name| (name.clone(), Group { name: GroupName(name.value), max_unavailable }))
    });
    table.refuse_repeats("group", groups.iter().flatten().map(|(name, _)| name));
    groups.into_iter().map(|group| group.map(|(_, group)| group)).collect()
}
