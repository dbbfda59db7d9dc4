//! Parsing of the words of a script line.

use std::collections::BTreeMap;
use std::time::Duration;

use allclear::core::model::attempt::Outcome;
use allclear::core::model::claim::PostOutcome;
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::id::{EventId, GroupName, VmName, WorkloadName};
use allclear::core::model::time::Timestamp;
use allclear::core::model::workload::{Hook, OnAbsent, OnFailure, Origin, Phase, RunsOn, Workload};
use allclear::core::policy::window::{Window, Zone};

/// `90s`, `15m`, `1m30s`, `1500ms`, `2h`, `7d`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let mistake = || format!("'{text}' is not a duration");
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(mistake)?;
        let (number, unit) = rest.split_at(digits);
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        let millis = match &unit[..end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(mistake()),
        };
        total += Duration::from_millis(millis * number.parse::<u64>().map_err(|_| mistake())?);
        rest = &unit[end..];
    }
    Ok(total)
}

/// The arguments after the named words: `key=value` and bare words.
#[derive(Default)]
pub(crate) struct Options<'a> {
    pub(crate) values: BTreeMap<&'a str, &'a str>,
    pub(crate) words: Vec<&'a str>,
}

pub(crate) fn options<'a>(words: impl Iterator<Item = &'a str>) -> Options<'a> {
    let mut found = Options::default();
    for word in words {
        match word.split_once('=') {
            Some((key, value)) => {
                found.values.insert(key, value);
            }
            None => found.words.push(word),
        }
    }
    found
}

impl<'a> Options<'a> {
    pub(crate) fn span(&self, key: &str) -> Result<Option<Duration>, String> {
        self.values.get(key).map(|value| span(value)).transpose()
    }

    pub(crate) fn list(&self, key: &str) -> impl Iterator<Item = &'a str> {
        self.values.get(key).copied().into_iter().flat_map(|value| value.split(','))
    }
}

/// `Sat,Sun/2-5`: days, and the hours at which a window opens and closes, in UTC.
pub(crate) fn window(text: &str) -> Result<Window, String> {
    let mistake = || format!("'{text}' is not a window");
    let (names, hours) = text.split_once('/').ok_or_else(mistake)?;
    let (opens, closes) = hours.split_once('-').ok_or_else(mistake)?;
    let minutes = |hour: &str| hour.parse::<u16>().map(|hour| hour * 60).map_err(|_| mistake());
    let days = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].map(|day| names.split(',').any(|name| name == day));
    let zone = Zone { name: "UTC".into(), first: 0, changes: Vec::new() };
    Ok(Window { days, opens: minutes(opens)?, closes: minutes(closes)?, zone })
}

/// `nothing`, or announcements with `;` between them.
pub(crate) fn document(text: &str, now: Timestamp) -> Result<Document, String> {
    if text.trim() == "nothing" {
        return Ok(Document::default());
    }
    let events: Result<Vec<_>, _> = text.split(';').map(|event| announcement(event, now)).collect();
    Ok(Document::new(events?))
}

/// `Scheduled User Reboot e1 db-0,db-1 notbefore=+15m duration=9s`; `notbefore=15m` counts from the beginning.
pub(crate) fn announcement(text: &str, now: Timestamp) -> Result<Announcement, String> {
    let options = options(text.split_whitespace());
    let [status, source, kind, id, resources] = options.words[..] else {
        return Err(format!("'{text}' is not STATUS SOURCE TYPE EVENT RESOURCES"));
    };
    let not_before = match options.values.get("notbefore").copied() {
        None | Some("unknown") => NotBefore::Unknown,
        Some(text) => NotBefore::At(match text.strip_prefix('+') {
            Some(later) => now.plus(span(later)?),
            None => Timestamp(0).plus(span(text)?),
        }),
    };
    Ok(Announcement {
        id: EventId::new(id),
        status: Status::parse(status),
        kind: EventType::parse(kind),
        source: Source::parse(source),
        resource_type: "VirtualMachine".into(),
        resources: resources.split(',').map(VmName::new).collect(),
        not_before,
        description: String::new(),
        duration: options.span("duration")?,
    })
}

/// `pg group=orders after=cache: failover timeout=60s confirm; restore`
pub(crate) fn workload(text: &str) -> Result<Workload, String> {
    let (head, hooks) = text.split_once(':').unwrap_or((text, ""));
    let options = options(head.split_whitespace());
    let name = options.words.first().ok_or("a workload needs a name")?;
    let hooks: Result<Vec<_>, _> = hooks.split(';').filter(|hook| !hook.trim().is_empty()).map(hook).collect();
    Ok(Workload {
        name: WorkloadName((*name).into()),
        group: options.values.get("group").map(|group| GroupName((*group).into())),
        after: options.list("after").map(|name| WorkloadName(name.into())).collect(),
        hooks: hooks?,
        origin: Origin::Configured,
        on_absent: options.values.get("on_absent").and_then(|word| OnAbsent::parse(word)).unwrap_or_default(),
    })
}

fn hook(text: &str) -> Result<Hook, String> {
    let options = options(text.split_whitespace());
    let phase = options.words.first().and_then(|word| Phase::parse(word)).ok_or(format!("'{text}': no phase"))?;
    let has = |word| options.words.contains(&word);
    Ok(Hook {
        phase,
        name: options.values.get("name").map(|name| (*name).into()),
        command_digest: options.values.get("runs").map_or(Ok(0), |n| n.parse()).map_err(|_| "runs is a number")?,
        timeout: options.span("timeout")?.unwrap_or(Duration::from_mins(1)),
        max_attempts: options
            .values
            .get("attempts")
            .map_or(Ok(2), |n| n.parse())
            .map_err(|_| "attempts is a number")?,
        on_failure: if has("continue") { OnFailure::Continue } else { OnFailure::Hold },
        runs_on: match (has("peer"), has("any")) {
            (true, _) => RunsOn::Peer,
            (_, true) => RunsOn::Any,
            (false, false) => RunsOn::Affected,
        },
        can_confirm: has("confirm"),
        can_undo: has("undo"),
        can_dry_run: has("dry_run"),
        min_freeze: options.span("min_freeze")?,
        fresh_for: options.span("fresh_for")?,
        optional_if_short: has("optional_if_short"),
        worst: options.span("worst")?,
        expected: options.span("expected")?,
        exclusive: has("exclusive"),
        event_types: options.list("kinds").map(EventType::parse).collect(),
    })
}

/// `done`, `failed no standby`, …
pub(crate) fn outcome(text: &str) -> Result<Outcome, String> {
    let (word, reason) = text.trim().split_once(' ').unwrap_or((text.trim(), "no reason"));
    Ok(match word {
        "done" => Outcome::Done,
        "not_applicable" => Outcome::NotApplicable,
        "not_done" => Outcome::NotDone,
        "failed" => Outcome::Failed(reason.into()),
        "blocked" => Outcome::Blocked(reason.into()),
        "timed_out" => Outcome::TimedOut(reason.into()),
        "cancelled" => Outcome::Cancelled,
        "unknown" => Outcome::Unknown(reason.into()),
        _ => return Err(format!("'{word}' is no outcome")),
    })
}

/// `accepted`, `refused 404`, …
pub(crate) fn post_outcome(text: &str) -> Result<PostOutcome, String> {
    let (word, rest) = text.trim().split_once(' ').unwrap_or((text.trim(), "no reason"));
    Ok(match word {
        "accepted" => PostOutcome::Accepted,
        "refused" => PostOutcome::Refused(rest.parse().map_err(|_| "refused needs a status")?),
        "not_sent" => PostOutcome::NotSent(rest.into()),
        "unknown" => PostOutcome::Unknown(rest.into()),
        "withdrawn" => PostOutcome::Withdrawn,
        "views_differ" => PostOutcome::Differs,
        _ => return Err(format!("'{word}' is no outcome of a post")),
    })
}
