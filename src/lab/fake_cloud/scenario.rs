//! Scenarios: the events of a TOML file, in the order of time. VMs are named by position, so that a scenario fits any
//! cluster.

use std::collections::BTreeMap;
use std::io::Read;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use super::order::EventOrder;
use allclear_cloud::{Cloud, PlatformBehaviour, PlatformEvent, When};
use allclear_core::model::document::Announcement;
use allclear_core::model::id::{EventId, VmName};
use allclear_core::model::time::Timestamp;

/// The built-in scenarios, by name.
pub const SCENARIOS: [(&str, &str); 12] = [
    ("canceled-maintenance", include_str!("scenarios/canceled-maintenance.toml")),
    ("degraded-hardware", include_str!("scenarios/degraded-hardware.toml")),
    ("hardware-failure", include_str!("scenarios/hardware-failure.toml")),
    ("host-maintenance", include_str!("scenarios/host-maintenance.toml")),
    ("live-migration", include_str!("scenarios/live-migration.toml")),
    ("preempt", include_str!("scenarios/preempt.toml")),
    ("redeploy", include_str!("scenarios/redeploy.toml")),
    ("terminate", include_str!("scenarios/terminate.toml")),
    ("two-vms-one-event", include_str!("scenarios/two-vms-one-event.toml")),
    ("user-reboot", include_str!("scenarios/user-reboot.toml")),
    ("user-redeploy", include_str!("scenarios/user-redeploy.toml")),
    ("wave", include_str!("scenarios/wave.toml")),
];

const LARGEST_FILE: usize = 64 * 1024;
const MOST_EVENTS: usize = 100;

/// A scenario that is valid by itself.
#[derive(Clone, Debug)]
pub struct CloudScenario {
    name: String,
    about: String,
    events: Vec<EventOrder>,
}

/// Why there is no scenario to play.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    #[error("there is no scenario \"{name}\"{}; use one of {}, or the path of a file", nearest(.name), known())]
    Unknown { name: String },
    #[error("the scenario {} cannot be read: {source}; check the path", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the scenario {origin} is larger than {LARGEST_FILE} bytes; split it")]
    TooLarge { origin: String },
    #[error("the scenario {origin} has mistakes:\n  {}", mistakes.join("\n  "))]
    Mistakes { origin: String, mistakes: Vec<String> },
    #[error("the scenario {name} needs {needs} VMs and this cloud has {has}; name more with --vms")]
    TooFewVms { name: String, needs: usize, has: usize },
    #[error("the scenario {name} cannot be played now: {reason}")]
    Refused { name: String, reason: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScenarioFile {
    about: String,
    #[serde(default)]
    event: Vec<toml::Table>,
}

impl CloudScenario {
    /// A built-in scenario by its name, or a scenario file by its path.
    pub fn find(name_or_path: &str) -> Result<Self, ScenarioError> {
        if let Some((name, text)) = SCENARIOS.iter().find(|(name, _)| *name == name_or_path) {
            return Self::parse(name, text);
        }
        let path = Path::new(name_or_path);
        if path.extension().is_some_and(|extension| extension == "toml") || name_or_path.contains('/') {
            return Self::read(path);
        }
        Err(ScenarioError::Unknown { name: name_or_path.to_owned() })
    }

    pub fn read(path: &Path) -> Result<Self, ScenarioError> {
        let unreadable = |source| ScenarioError::Unreadable { path: path.to_owned(), source };
        let mut text = String::new();
        let limit = u64::try_from(LARGEST_FILE).unwrap_or(u64::MAX).saturating_add(1);
        std::fs::File::open(path).map_err(unreadable)?.take(limit).read_to_string(&mut text).map_err(unreadable)?;
        Self::parse(&path.display().to_string(), &text)
    }

    /// Parses a scenario; messages use `name`.
    pub fn parse(name: &str, text: &str) -> Result<Self, ScenarioError> {
        if text.len() > LARGEST_FILE {
            return Err(ScenarioError::TooLarge { origin: name.to_owned() });
        }
        let wrong = |mistakes| ScenarioError::Mistakes { origin: name.to_owned(), mistakes };
        let written: ScenarioFile =
            toml::from_str(text).map_err(|error| wrong(vec![error.to_string().trim_end().to_owned()]))?;
        let mut mistakes = Vec::new();
        if written.event.is_empty() || written.event.len() > MOST_EVENTS {
            mistakes.push(format!("{} [[event]] tables; write 1 to {MOST_EVENTS}", written.event.len()));
        }
        let mut events = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for (place, table) in (1..).zip(written.event.into_iter().take(MOST_EVENTS)) {
            let called =
                table.get("name").and_then(toml::Value::as_str).map_or(String::new(), |name| format!(" ({name})"));
            match EventOrder::deserialize(table) {
                Err(error) => mistakes.push(format!("event {place}{called}: {}", one_line(&error.to_string()))),
                Ok(event) => {
                    let found = event.mistakes().into_iter().chain(mistakes_of_place(&event, &names));
                    mistakes.extend(found.map(|mistake| format!("event {place}{called}: {mistake}")));
                    names.extend(event.name.clone());
                    events.push(event);
                }
            }
        }
        if mistakes.is_empty() {
            Ok(Self { name: name.to_owned(), about: written.about, events })
        } else {
            Err(wrong(mistakes))
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn about(&self) -> &str {
        &self.about
    }

    /// Number of events.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    /// The minimum number of VMs.
    pub fn needs(&self) -> usize {
        self.events.iter().map(EventOrder::needs).max().unwrap_or(0)
    }

    /// The least time from an announcement to the event's start by itself, at the speed as written.
    pub fn shortest_notice(&self) -> Duration {
        self.events.iter().map(EventOrder::notice).min().unwrap_or_default()
    }

    /// The scenario's events as first announced, each at `now`, for the VMs in this order.
    pub fn first_sights(&self, vms: &[VmName], now: Timestamp) -> Result<Vec<Announcement>, ScenarioError> {
        self.fits(vms)?;
        let refused = |reason: String| ScenarioError::Refused { name: self.name.clone(), reason };
        let mut sights = Vec::new();
        for (place, event) in (1..).zip(&self.events) {
            let mut cloud = Cloud::new(Vec::new(), PlatformBehaviour::default(), place, now);
            let plan = event.plan(vms, NonZeroU32::MIN).map_err(refused)?;
            let id = cloud.announce(now, plan).map_err(|refusal| refused(refusal.to_string()))?;
            sights.extend(cloud.event(&id).and_then(PlatformEvent::announcement));
        }
        Ok(sights)
    }

    fn fits(&self, vms: &[VmName]) -> Result<(), ScenarioError> {
        let (needs, has) = (self.needs(), vms.len());
        if needs > has { Err(ScenarioError::TooFewVms { name: self.name.clone(), needs, has }) } else { Ok(()) }
    }

    /// Plans all events of the scenario from `now` on, for the VMs in this order.
    pub fn begin(
        &self,
        cloud: &mut Cloud,
        vms: &[VmName],
        speed: NonZeroU32,
        now: Timestamp,
    ) -> Result<Vec<EventId>, ScenarioError> {
        self.fits(vms)?;
        let refused = |reason: String| ScenarioError::Refused { name: self.name.clone(), reason };
        // Either all events of the scenario are planned or none.
        let mut trial = cloud.clone();
        let mut named: BTreeMap<&str, EventId> = BTreeMap::new();
        let mut ids = Vec::new();
        for event in &self.events {
            let when = match &event.after {
                Some(after) => When::After {
                    event: named.get(after.event.as_str()).cloned().unwrap_or_else(|| EventId::new(&after.event)),
                    pause: after.pause.map(|pause| pause.real(speed)).unwrap_or_default(),
                },
                None => When::At(now.plus(event.at.map(|at| at.real(speed)).unwrap_or_default())),
            };
            let plan = event.plan(vms, speed).map_err(refused)?;
            let id = trial.schedule(now, when, plan).map_err(|refusal| refused(refusal.to_string()))?;
            if let Some(name) = &event.name {
                named.insert(name, id.clone());
            }
            ids.push(id);
        }
        *cloud = trial;
        Ok(ids)
    }
}

fn mistakes_of_place(event: &EventOrder, names: &[String]) -> Vec<String> {
    let mut mistakes = Vec::new();
    if let Some(name) = &event.name
        && names.contains(name)
    {
        mistakes.push(format!("another event is named \"{name}\" already; choose another name"));
    }
    if let Some(after) = &event.after
        && !names.contains(&after.event)
    {
        mistakes
            .push(format!("after: no event above has the name \"{}\"; name an event above this event", after.event));
    }
    if event.at.is_none() && event.after.is_none() {
        mistakes.push("the event has no time; add at = \"2s\", or after = { event = \"…\" }".into());
    }
    mistakes
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn known() -> String {
    SCENARIOS.map(|(name, _)| name).join(", ")
}

fn nearest(name: &str) -> String {
    let close = SCENARIOS.iter().map(|(known, _)| (strsim::damerau_levenshtein(known, name), known)).min();
    close.filter(|(distance, _)| *distance <= 4).map_or(String::new(), |(_, known)| format!(" (did you mean {known}?)"))
}
