//! One event as written by people, in a scenario (TOML) and in an announcement (JSON), and the resulting plan.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::Deserialize;

use super::span::ScenarioTime;
use allclear_cloud::{Audience, EventPlan, Opening, Relapse, ScheduleMove};
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::{EventId, VmName};

const MOST_VMS: usize = 100;
const MOST_STEPS: usize = 32;
const LONGEST_WORD: usize = 128;
const LONGEST_DESCRIPTION: usize = 4096;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct EventOrder {
    /// The name by which other events of the scenario refer to this event.
    pub(super) name: Option<String>,
    /// Time of the announcement, from the beginning of the scenario, or from now.
    pub(super) at: Option<ScenarioTime>,
    pub(super) after: Option<AfterOrder>,
    pub(super) id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    source: Option<String>,
    description: Option<String>,
    #[serde(alias = "vm")]
    vms: Vms,
    /// VMs that see the event; left out: every VM.
    seen_by: Option<Vms>,
    /// The announced duration as in documents: whole seconds, -1 is unknown. Not changed by the speed.
    #[serde(default = "unknown")]
    duration_s: i64,
    notice: Option<ScenarioTime>,
    #[serde(default)]
    opens: Opens,
    start_delay: Option<ScenarioTime>,
    other_tenants: Option<ScenarioTime>,
    late: Option<ScenarioTime>,
    impact: Option<ScenarioTime>,
    #[serde(default)]
    relapses: Vec<RelapseOrder>,
    linger: Option<ScenarioTime>,
    cancel_after: Option<ScenarioTime>,
    approved_after: Option<ScenarioTime>,
    strikes_after: Option<ScenarioTime>,
    #[serde(default)]
    moves: Vec<MoveOrder>,
}

/// So long after another event of the scenario has ended.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AfterOrder {
    pub(super) event: String,
    pub(super) pause: Option<ScenarioTime>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RelapseOrder {
    after: ScenarioTime,
    lasts: ScenarioTime,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveOrder {
    after: ScenarioTime,
    notice: ScenarioTime,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum Opens {
    #[default]
    Scheduled,
    Started,
}

/// One VM or a list: by position in the cluster, or by name (also of a VM outside of the cluster).
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "VMs are positions (0, 1, …) or names: write one VM or a list")]
enum Vms {
    One(VmRef),
    Many(Vec<VmRef>),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a VM is a position (0, 1, …) or a name")]
enum VmRef {
    Position(usize),
    Name(String),
}

fn unknown() -> i64 {
    -1
}

impl Vms {
    fn list(&self) -> &[VmRef] {
        match self {
            Self::One(vm) => std::slice::from_ref(vm),
            Self::Many(vms) => vms,
        }
    }

    /// The VMs by name.
    fn names(&self, cluster: &[VmName]) -> Result<Vec<VmName>, String> {
        self.list().iter().map(|vm| vm.name(cluster)).collect()
    }

    fn mistakes(&self, field: &str) -> Vec<String> {
        let mut mistakes = Vec::new();
        let vms = self.list();
        if vms.is_empty() || vms.len() > MOST_VMS {
            mistakes.push(format!("{field}: {} VMs; name 1 to {MOST_VMS}", vms.len()));
        }
        for vm in vms.iter().take(MOST_VMS) {
            if let VmRef::Name(name) = vm
                && (name.is_empty() || name.len() > LONGEST_WORD)
            {
                mistakes.push(format!("{field}: a VM's name has 1 to {LONGEST_WORD} characters"));
            }
        }
        mistakes
    }
}

impl VmRef {
    fn name(&self, cluster: &[VmName]) -> Result<VmName, String> {
        match self {
            Self::Position(position) => cluster
                .get(*position)
                .cloned()
                .ok_or_else(|| format!("there is no VM at position {position}: this cloud has {} VMs", cluster.len())),
            Self::Name(name) => Ok(VmName::new(name)),
        }
    }
}

impl EventOrder {
    /// All mistakes of the order that do not depend on the cluster.
    pub(super) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = self.vms.mistakes("vms");
        mistakes.extend(self.seen_by.iter().flat_map(|vms| vms.mistakes("seen_by")));
        let words =
            [("name", &self.name), ("id", &self.id), ("type", &Some(self.kind.clone())), ("source", &self.source)];
        for (field, word) in words {
            if word.as_ref().is_some_and(|word| word.is_empty() || word.len() > LONGEST_WORD) {
                mistakes.push(format!("{field}: must have 1 to {LONGEST_WORD} characters"));
            }
        }
        if self.description.as_ref().is_some_and(|text| text.len() > LONGEST_DESCRIPTION) {
            mistakes.push(format!("description: longer than {LONGEST_DESCRIPTION} bytes; shorten it"));
        }
        if self.duration_s < -1 {
            mistakes.push(format!("duration_s: {} is impossible; use -1 for unknown, or 0 and more", self.duration_s));
        }
        if self.at.is_some() && self.after.is_some() {
            mistakes.push("at and after exclude each other; leave one out".into());
        }
        for (field, steps) in [("relapses", self.relapses.len()), ("moves", self.moves.len())] {
            if steps > MOST_STEPS {
                mistakes.push(format!("{field}: {steps} entries; use at most {MOST_STEPS}"));
            }
        }
        mistakes
    }

    /// The minimum number of VMs for this order.
    pub(super) fn needs(&self) -> usize {
        let seen_by = self.seen_by.as_ref().map_or(&[][..], Vms::list);
        let positions = self.vms.list().iter().chain(seen_by).map(|vm| match vm {
            VmRef::Position(position) => position.saturating_add(1),
            VmRef::Name(_) => 0,
        });
        positions.max().unwrap_or(0)
    }

    /// The time from the announcement until the event starts by itself.
    pub(super) fn notice(&self) -> Duration {
        let usual = || EventPlan::new(EventType::parse(&self.kind), Source::User, Vec::new()).notice;
        self.notice.map_or_else(usual, |notice| notice.real(NonZeroU32::MIN))
    }

    pub(super) fn plan(&self, cluster: &[VmName], speed: NonZeroU32) -> Result<EventPlan, String> {
        let real = |span: Option<ScenarioTime>| span.map(|span| span.real(speed));
        let source = Source::parse(self.source.as_deref().unwrap_or("Platform"));
        let usual = EventPlan::new(EventType::parse(&self.kind), source, self.vms.names(cluster)?).faster(speed);
        let seen_by = match &self.seen_by {
            None => Audience::Everyone,
            Some(vms) => Audience::Only(vms.names(cluster)?),
        };
        let mut moves: Vec<ScheduleMove> = self
            .moves
            .iter()
            .map(|step| ScheduleMove { after: step.after.real(speed), notice: step.notice.real(speed) })
            .collect();
        moves.sort_by_key(|step| step.after);
        let relapse =
            |relapse: &RelapseOrder| Relapse { after: relapse.after.real(speed), lasts: relapse.lasts.real(speed) };
        Ok(EventPlan {
            id: self.id.as_deref().map(EventId::new),
            description: self.description.clone().unwrap_or_default(),
            resource_type: usual.resource_type,
            duration: u64::try_from(self.duration_s).ok().map(Duration::from_secs),
            notice: real(self.notice).unwrap_or(usual.notice),
            seen_by,
            opening: match self.opens {
                Opens::Scheduled => Opening::Scheduled,
                Opens::Started => Opening::Started,
            },
            start_delay: real(self.start_delay).unwrap_or(usual.start_delay),
            other_tenants: real(self.other_tenants).unwrap_or(usual.other_tenants),
            late: real(self.late).unwrap_or(usual.late),
            impact: real(self.impact).unwrap_or(usual.impact),
            relapses: self.relapses.iter().map(relapse).collect(),
            linger: real(self.linger).unwrap_or(usual.linger),
            cancel_after: real(self.cancel_after),
            approved_after: real(self.approved_after),
            strikes_after: real(self.strikes_after),
            moves,
            kind: usual.kind,
            source: usual.source,
            resources: usual.resources,
        })
    }
}
