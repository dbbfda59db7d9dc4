//! `[[workload.hook]]`: what a workload wants run in a phase.

use core::time::Duration;

use super::policy;
use super::reader::Table;
use super::scalar;
use super::secret::is_secret;
use super::written::Value;
use crate::machine::document::Kind;
use crate::machine::workload as registered;
use crate::machine::workload::{OnFailure, Phase, RunsOn};

const DAY: Duration = Duration::from_hours(24);

/// How a hook is reached.
#[derive(Clone, PartialEq, Debug)]
pub enum Way {
    /// A program, by its absolute path or its bare name, and its arguments, run without a shell; never empty.
    Command(Vec<String>),
    /// An address that is posted to.
    Http(String),
    /// The address of Patroni's REST API.
    Patroni(String),
}

/// What a workload wants run in a phase.
#[derive(Clone, PartialEq, Debug)]
pub struct Hook {
    pub phase: Phase,
    pub run: Way,
    /// For one attempt.
    pub timeout: Duration,
    /// How often it is run at the most; at least 1.
    pub attempts: u32,
    pub on_failure: OnFailure,
    pub runs_on: RunsOn,
    /// Asks whether it is done.
    pub confirm: Option<Way>,
    /// Takes back what was begun and not finished.
    pub undo: Option<Way>,
    /// In a dry run its commands are run and change nothing.
    pub dry_run: bool,
    /// Not run for freezes known to be shorter.
    pub min_freeze: Option<Duration>,
    /// Confirmed again before the all-clear when older; only with `confirm`.
    pub fresh_for: Option<Duration>,
    /// Left out when the notice does not hold `worst`.
    pub optional_if_short: bool,
    /// The longest it is known to take; `None`: its timeout.
    pub worst: Option<Duration>,
    /// At most one runs at a time in the cluster.
    pub exclusive: bool,
    /// The types of events it is for; empty: all.
    pub kinds: Vec<Kind>,
    /// Whose rights its commands have when the replica runs as root.
    pub user: Option<String>,
    /// Added to its commands' environment, in the order of the file.
    pub env: Vec<(String, String)>,
}

impl Hook {
    /// What the log is told.
    pub fn registered(&self) -> registered::Hook {
        registered::Hook {
            phase: self.phase,
            timeout: self.timeout,
            attempts: self.attempts,
            on_failure: self.on_failure,
            runs_on: self.runs_on,
            can_confirm: self.confirm.is_some(),
            can_undo: self.undo.is_some(),
            can_dry_run: self.dry_run,
            min_freeze: self.min_freeze,
            fresh_for: self.fresh_for,
            optional_if_short: self.optional_if_short,
            worst: self.worst,
            exclusive: self.exclusive,
            kinds: self.kinds.clone(),
        }
    }
}

pub(super) fn read(table: &mut Table<'_>) -> Option<Hook> {
    let up_to_a_day = || scalar::duration(Duration::ZERO..=DAY);
    let why = "write checkpoint, failover, drain, shutdown, restore or ready";
    let phase = table.required("phase", scalar::word(Phase::WORDS, Phase::from_word), why);
    let run = read_run(table);
    let adapted = read_adapter(table, phase.as_ref().map(|phase| phase.value), run.as_ref());
    let asked = read_way(table, "confirm");
    let timeout = scalar::duration(Duration::from_millis(1)..=DAY);
    let hook = Hook {
        phase: phase.as_ref()?.value,
        timeout: table.or("timeout", timeout, Duration::from_mins(1)),
        attempts: table.or("attempts", scalar::number(1..=100), 2),
        on_failure: table.or("on_failure", scalar::word(OnFailure::WORDS, OnFailure::from_word), OnFailure::Hold),
        runs_on: table.or("runs_on", scalar::word(RunsOn::WORDS, RunsOn::from_word), RunsOn::Affected),
        confirm: adapted.as_ref().map_or(asked, |adapted| adapted.confirm.clone()),
        undo: read_way(table, "undo"),
        dry_run: table.or("dry_run", scalar::boolean, false),
        min_freeze: table.optional("min_freeze", up_to_a_day()),
        fresh_for: table.optional("fresh_for", up_to_a_day()),
        optional_if_short: table.or("optional_if_short", scalar::boolean, false),
        worst: table.optional("worst", scalar::duration(Duration::from_millis(1)..=DAY)),
        exclusive: table.or("exclusive", scalar::boolean, false),
        kinds: table.list("type", policy::kind).unwrap_or_default().into_iter().map(|kind| kind.value).collect(),
        user: table.optional("user", scalar::name),
        env: read_env(table),
        run: adapted.map_or(run, |adapted| Some(adapted.run))?,
    };
    if hook.fresh_for.is_some() && hook.confirm.is_none() && !table.has("confirm") {
        let message = "`workload.hook.fresh_for` means nothing here: it needs `confirm`, which asks whether it is done";
        table.mistake(&table.place_of("fresh_for"), message);
    }
    Some(hook)
}

/// One of the two.
fn read_run(table: &mut Table<'_>) -> Option<Way> {
    let command = table.optional("command", scalar::command).map(Way::Command);
    let http = table.optional("http", scalar::hook_url).map(Way::Http);
    match (table.has("command"), table.has("http")) {
        (true, true) => {
            let message = format!("`{}` has both `command` and `http`: a hook is one of the two", table.path());
            table.mistake(&table.place_of("http"), message);
        }
        (false, false) => {
            let message = "names nothing to run: add `command = [\"/path/to/program\"]` or `http = \"http://…\"`";
            table.mistake_here(message);
        }
        (true, false) | (false, true) => {}
    }
    command.or(http)
}

/// A program as a list, or an address in a table.
fn read_way(table: &mut Table<'_>, key: &'static str) -> Option<Way> {
    if table.is_table(key) {
        let why = "write the address that is posted to";
        let url = table.table(key, |way| way.required("http", scalar::hook_url, why)).flatten();
        return url.map(|url| Way::Http(url.value));
    }
    table.optional(key, scalar::command_or_advice).map(Way::Command)
}

/// What an adapter makes of a hook.
struct Adapted {
    run: Way,
    confirm: Option<Way>,
}

fn read_adapter(table: &mut Table<'_>, phase: Option<Phase>, run: Option<&Way>) -> Option<Adapted> {
    const KNOWN: &[&str] = &["patroni"];
    table.optional("adapter", scalar::word(KNOWN, |word| (word == "patroni").then_some("patroni")))?;
    let place = table.place_of("adapter");
    let refuse = |why: &str| table.mistake(&place, format!("`{}.adapter` {why}", table.path()));
    if !table.has("http") {
        refuse("needs `http`, the address of the REST API of this VM's Patroni, as \"http://127.0.0.1:8008\"");
    }
    if phase.is_some_and(|phase| !matches!(phase, Phase::Failover | Phase::Restore | Phase::Ready)) {
        refuse("\"patroni\" is for the phases failover, restore and ready");
    }
    for key in ["confirm", "undo"].into_iter().filter(|key| table.has(key)) {
        let message = format!("`{}.{key}` means nothing here: Patroni itself is asked", table.path());
        table.mistake(&table.place_of(key), message);
    }
    let Some(Way::Http(url)) = run else { return None };
    let way = Way::Patroni(url.clone());
    Some(Adapted { confirm: (phase == Some(Phase::Failover)).then(|| way.clone()), run: way })
}

fn read_env(table: &mut Table<'_>) -> Vec<(String, String)> {
    // A value may be a secret, so it is not repeated.
    let text = |value: &Value| scalar::text(value).map_err(|_| "is not a text: write it in quotes".to_owned());
    let entries = table.entries("env", text).unwrap_or_default();
    for (name, _) in &entries {
        if name.value.contains('=') {
            table.mistake(&name.place, format!("{:?} cannot name a variable: it contains =", name.value));
        }
        if name.value.starts_with("ALLCLEAR_") {
            let message = format!("{} is one of the names that are set for every hook: choose another", name.value);
            table.mistake(&name.place, message);
        }
    }
    let variables: Vec<_> = entries.into_iter().filter_map(|(name, text)| Some((name.value, text?))).collect();
    for (name, _) in variables.iter().filter(|(name, value)| is_secret(name, value)) {
        table.hide("env", name);
    }
    variables
}
