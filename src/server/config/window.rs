//! `window` of a rule: times of the week in a time zone.

use core::fmt;

use allclear_core::model::time::Timestamp;
use allclear_core::policy::window::{Window, Zone};
use jiff::tz::{self, TimeZone};

use super::printed::Printed;
use super::reader::TomlTable;
use super::scalar;
use super::source::Value;

const DAYS: &[&str] = &["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// Changes of the clocks are known from 2020 until 2060, in seconds since the Unix epoch.
const KNOWN: [i64; 2] = [1_577_836_800, 2_840_140_800];

/// From Monday on.
#[derive(Clone, Copy)]
struct Day(usize);

/// Minutes since midnight.
#[derive(Clone, Copy)]
struct ClockTime(u16);

impl Printed for Day {
    fn printed(&self) -> toml::Value {
        DAYS[self.0].into()
    }
}

impl Printed for ClockTime {
    fn printed(&self) -> toml::Value {
        self.to_string().into()
    }
}

impl Printed for Zone {
    fn printed(&self) -> toml::Value {
        self.name.clone().into()
    }
}

impl fmt::Display for ClockTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

/// Reads a window; `None` where a part is missing or wrong.
pub(super) fn read(table: &mut TomlTable<'_>) -> Option<Window> {
    let day = scalar::word(DAYS, |word| DAYS.iter().position(|day| *day == word).map(Day));
    let named = table.list("days", day);
    if table.is_empty("days") {
        table.mistake(&table.place_of("days"), "`policy.rule.window.days` is empty: leave the key out for every day");
    }
    let opens = table.required("from", clock_time, "the window opens at this time, as \"02:00\"");
    let closes = table.required("to", clock_time, "the window closes at this time, as \"05:00\"");
    let zone = table.optional("zone", zone);
    if !table.has("zone") {
        table.default("zone", String::from("UTC"));
    }
    let mut days = [named.is_none(); 7];
    for day in named.iter().flatten() {
        days[day.value.0] = true;
    }
    let utc = || Zone { name: "UTC".into(), first: 0, changes: Vec::new() };
    Some(Window { days, opens: opens?.value.0, closes: closes?.value.0, zone: zone.unwrap_or_else(utc) })
}

fn clock_time(value: &Value) -> Result<ClockTime, String> {
    const ADVICE: &str = "write hours and minutes in quotes, from \"00:00\" to \"23:59\"";
    let text = scalar::text(value).map_err(|_| format!("is {}, not a time of day: {ADVICE}", value.shape))?;
    let number = |part: &str| part.parse::<u16>().ok().filter(|_| part.len() == 2 && part.is_ascii());
    let read = text.split_once(':').and_then(|(hours, minutes)| Some((number(hours)?, number(minutes)?)));
    let (hours, minutes) = read
        .filter(|(hours, minutes)| *hours < 24 && *minutes < 60)
        .ok_or_else(|| format!("is {text:?}, not a time of day: {ADVICE}"))?;
    Ok(ClockTime(hours * 60 + minutes))
}

fn zone(value: &Value) -> Result<Zone, String> {
    let name = scalar::name(value)?;
    let zone = TimeZone::get(&name).map_err(|_| {
        format!(
            "is {name:?}: this machine knows no time zone of this name; write one as \"Europe/Berlin\" or \"UTC\", and \
             see that the package tzdata is installed"
        )
    })?;
    let [from, until] = KNOWN.map(|at| jiff::Timestamp::from_second(at).unwrap_or_default());
    let changes = zone.following(from).take_while(|change| change.timestamp() < until);
    let changes = changes.map(|change: tz::TimeZoneTransition<'_>| {
        (Timestamp(change.timestamp().as_millisecond()), change.offset().seconds())
    });
    Ok(Zone { first: zone.to_offset(from).seconds(), changes: changes.collect(), name })
}
