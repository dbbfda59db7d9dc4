//! The treatment of an event (`SPEC.md` 4): the first rule of the configuration that matches, otherwise a default.
//! The treatment is committed with the event, so a change of the policy never changes an event under way.

pub mod window;

use crate::model::document::{Announcement, EventType, NotBefore, Source, Status};
use crate::model::id::VmName;
use crate::model::time::Timestamp;
use crate::model::treatment::{Action, Opening, Treatment};
use crate::model::workload::Phase;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;
use window::Window;

/// The policy of one replica's configuration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How long a user-initiated event is prepared before the event is approved regardless.
    pub user_budget: Duration,
    /// Freezes known to be shorter are prepared only by hooks with a fitting `min_freeze`.
    pub brief_freeze: Duration,
    pub foreign: Foreign,
    /// Hooks end this long before NotBefore.
    pub margin: Duration,
    /// Preparation starts this long before NotBefore.
    pub prepare_ahead: Duration,
    /// An event that keeps members out without progress releases the members after this long.
    pub give_back_after: Duration,
    /// A last call begins no earlier than this long before the hooks have to end.
    pub last_call: Duration,
    /// An accepted approval of an event still shown as Scheduled is posted again after this long, then after twice as
    /// long.
    pub repost_after: Duration,
    pub rules: Vec<Rule>,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            user_budget: Duration::from_mins(2),
            brief_freeze: Duration::from_secs(9),
            foreign: Foreign::Observe,
            margin: Duration::from_secs(5),
            prepare_ahead: Duration::from_mins(15),
            give_back_after: Duration::from_mins(2),
            last_call: Duration::from_mins(1),
            repost_after: Duration::from_mins(1),
            rules: Vec::new(),
        }
    }
}

/// The treatment of events without a member of this cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Foreign {
    Observe,
    ApproveUser,
}

string_enum!(Foreign { Observe => "observe", ApproveUser => "approve-user" });

/// One configured rule. An empty list and a missing range match everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    pub name: String,
    pub event_types: Vec<EventType>,
    pub sources: Vec<Source>,
    pub resources: Vec<VmName>,
    pub duration: Option<Range>,
    pub notice: Option<Range>,
    pub action: Action,
    /// `None`: the default phases of the event's type.
    pub phases: Option<Vec<Phase>>,
    pub budget: Option<Duration>,
    /// Preparation starts this long before NotBefore; `None`: as for events without a rule.
    pub prepare_ahead: Option<Duration>,
    /// Preparation starts at an earlier time if this window is open then.
    pub window: Option<Window>,
}

/// From `at_least` on, up to but without `below`. An unknown value matches no range.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Range {
    pub at_least: Option<Duration>,
    pub below: Option<Duration>,
}

impl Range {
    fn holds(self, value: Option<Duration>) -> bool {
        value.is_some_and(|value| {
            self.at_least.is_none_or(|least| value >= least) && self.below.is_none_or(|below| value < below)
        })
    }
}

/// One case of the policy: a configured rule, or one of the defaults.
#[derive(Clone, Copy, Debug)]
pub enum PolicyInput<'a> {
    AlreadyStarted,
    Rule(&'a Rule),
    Recommendation,
    Foreign,
    User,
    BriefFreeze,
    Other,
}

/// A condition of a case.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PolicyCondition<'a> {
    /// The platform has already started the event.
    Started,
    Type(&'a [EventType]),
    Source(&'a [Source]),
    Resources(&'a [VmName]),
    Duration(Range),
    Notice(Range),
    /// None of the event's resources is a member of this cluster.
    Foreign,
    /// The event is advice, or is not.
    Recommendation(bool),
}

/// The treatment of an event, and its derivation.
#[derive(Clone, Debug)]
pub struct Choice<'a> {
    /// The cases before the matching case, in their order, each with its first unmet condition.
    pub passed_over: Vec<(PolicyInput<'a>, PolicyCondition<'a>)>,
    pub case: PolicyInput<'a>,
    pub treatment: Treatment,
}

/// Chooses the treatment of an event at first sight.
pub fn treatment_of(policy: &Policy, event: &Announcement, members: &[VmName], now: Timestamp) -> Treatment {
    explain(policy, event, members, now).treatment
}

/// Chooses the treatment with an explanation: the first case with no unmet condition matches.
pub fn explain<'a>(policy: &'a Policy, event: &Announcement, members: &[VmName], now: Timestamp) -> Choice<'a> {
    let defaults = [PolicyInput::Recommendation, PolicyInput::Foreign, PolicyInput::User, PolicyInput::BriefFreeze];
    let cases =
        [PolicyInput::AlreadyStarted].into_iter().chain(policy.rules.iter().map(PolicyInput::Rule)).chain(defaults);
    let mut passed_over = Vec::new();
    for case in cases {
        let conditions = case.conditions(policy);
        match conditions.into_iter().find(|condition| !condition.holds(event, members, now)) {
            Some(unmet) => passed_over.push((case, unmet)),
            None => return Choice { passed_over, case, treatment: case.treatment(policy, event, now) },
        }
    }
    Choice { passed_over, case: PolicyInput::Other, treatment: PolicyInput::Other.treatment(policy, event, now) }
}

impl<'a> PolicyInput<'a> {
    /// The name of the rule in the treatment.
    pub fn name(self) -> &'a str {
        match self {
            Self::AlreadyStarted => "default: already started",
            Self::Rule(rule) => &rule.name,
            Self::Recommendation => "default: recommendation",
            Self::Foreign => "default: foreign",
            Self::User => "default: user-initiated",
            Self::BriefFreeze => "default: brief freeze",
            Self::Other => "default",
        }
    }

    /// All conditions have to hold; an empty list matches everything.
    pub fn conditions(self, policy: &Policy) -> Vec<PolicyCondition<'a>> {
        const USER: &[Source] = &[Source::User];
        const FREEZE: &[EventType] = &[EventType::Freeze];
        match self {
            Self::AlreadyStarted => alloc::vec![PolicyCondition::Started, PolicyCondition::Recommendation(false)],
            Self::Rule(rule) => rule.conditions(),
            Self::Recommendation => alloc::vec![PolicyCondition::Recommendation(true)],
            Self::Foreign => alloc::vec![PolicyCondition::Foreign],
            Self::User => alloc::vec![PolicyCondition::Source(USER)],
            Self::BriefFreeze => {
                let brief = Range { at_least: None, below: Some(policy.brief_freeze) };
                alloc::vec![PolicyCondition::Type(FREEZE), PolicyCondition::Duration(brief)]
            }
            Self::Other => Vec::new(),
        }
    }

    fn treatment(self, policy: &Policy, event: &Announcement, now: Timestamp) -> Treatment {
        let user = event.source == Source::User;
        let usual = || default_phases(&event.kind);
        let (action, phases, budget) = match self {
            Self::AlreadyStarted => (Action::Prepare, alloc::vec![Phase::Failover], None),
            Self::Rule(rule) => (rule.action, rule.phases.clone().unwrap_or_else(usual), rule.budget),
            Self::Foreign if user && policy.foreign == Foreign::ApproveUser => (Action::Approve, Vec::new(), None),
            Self::Recommendation | Self::Foreign => (Action::Observe, Vec::new(), None),
            Self::User => (Action::Prepare, usual(), Some(policy.user_budget)),
            Self::BriefFreeze | Self::Other => (Action::Prepare, usual(), None),
        };
        let (ahead, window) = match self {
            Self::Rule(rule) => (rule.prepare_ahead, rule.window.as_ref()),
            _ => (None, None),
        };
        let starts_at_once = user && window.is_none();
        let ahead = ahead.or_else(|| (!starts_at_once).then_some(policy.prepare_ahead));
        let opening = window.and_then(|window| next_opening(window, event, ahead, now));
        Treatment {
            action,
            rule: self.name().into(),
            phases,
            budget,
            ahead,
            opening,
            missed: None,
            only_named_freezes: matches!(self, Self::BriefFreeze),
            margin: policy.margin,
            give_back_after: policy.give_back_after,
            last_call: policy.last_call,
            repost_after: policy.repost_after,
        }
    }
}

/// The next opening of the window, before the preparation starts without a window.
fn next_opening(window: &Window, event: &Announcement, ahead: Option<Duration>, now: Timestamp) -> Option<Opening> {
    match (ahead, &event.not_before) {
        (Some(ahead), NotBefore::At(at)) => window.next_opening(now, at.minus(ahead)),
        _ => None,
    }
}

/// The treatment of an event that missed the opening of its window: the same in the next one, by the present window of
/// the rule.
pub fn treatment_in_next_window(
    policy: &Policy,
    event: &Announcement,
    treatment: &Treatment,
    now: Timestamp,
) -> Treatment {
    let rule = policy.rules.iter().find(|rule| rule.name == treatment.rule);
    let window = rule.and_then(|rule| rule.window.as_ref());
    let opening = window.and_then(|window| next_opening(window, event, treatment.ahead, now));
    Treatment { opening, missed: treatment.opening, ..treatment.clone() }
}

impl PolicyCondition<'_> {
    fn holds(&self, event: &Announcement, members: &[VmName], now: Timestamp) -> bool {
        match self {
            Self::Started => event.status == Status::Started,
            Self::Type(kinds) => kinds.contains(&event.kind),
            Self::Source(sources) => sources.contains(&event.source),
            Self::Resources(named) => event.resources.iter().any(|vm| named.contains(vm)),
            Self::Duration(range) => range.holds(event.duration),
            Self::Notice(range) => range.holds(notice(event, now)),
            Self::Recommendation(is) => event.kind.is_recommendation() == *is,
            Self::Foreign => !event.resources.iter().any(|resource| members.contains(resource)),
        }
    }
}

/// The rest of an event's notice; `None` if unknown.
pub fn notice(event: &Announcement, now: Timestamp) -> Option<Duration> {
    match event.not_before {
        NotBefore::At(at) => Some(at.since(now)),
        NotBefore::Unknown => None,
    }
}

fn default_phases(kind: &EventType) -> Vec<Phase> {
    use Phase::{Checkpoint, Drain, Failover, Shutdown};
    match kind {
        EventType::Freeze => alloc::vec![Checkpoint, Failover, Drain],
        EventType::Reboot | EventType::Redeploy | EventType::Other(_) => {
            alloc::vec![Checkpoint, Failover, Drain, Shutdown]
        }
        EventType::Preempt => alloc::vec![Failover, Drain],
        EventType::Terminate => alloc::vec![Failover, Drain, Shutdown],
    }
}

impl Rule {
    fn conditions(&self) -> Vec<PolicyCondition<'_>> {
        let named = [
            (!self.event_types.is_empty()).then_some(PolicyCondition::Type(&self.event_types)),
            (!self.sources.is_empty()).then_some(PolicyCondition::Source(&self.sources)),
            (!self.resources.is_empty()).then_some(PolicyCondition::Resources(&self.resources)),
            self.duration.map(PolicyCondition::Duration),
            self.notice.map(PolicyCondition::Notice),
        ];
        named.into_iter().flatten().collect()
    }
}

#[cfg(test)]
mod tests;
