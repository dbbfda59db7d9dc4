//! Which treatment an event gets (`behaviour.md` 4): the configured rules in order, then the defaults.
//! The choice is committed with the event, so a policy that changes never changes an event under way.

use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use super::document::{Announcement, Kind, NotBefore, Source, Status};
use super::id::VmName;
use super::time::Timestamp;
use super::words::words;
use super::workload::Phase;

/// The policy of one replica's configuration.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How long a user-initiated event is prepared before it is approved all the same.
    pub user_budget: Duration,
    /// Freezes known to be shorter are prepared only by hooks that name a fitting `min_freeze`.
    pub brief_freeze: Duration,
    pub foreign: Foreign,
    /// Hooks end this long before NotBefore.
    pub margin: Duration,
    /// Preparation starts this long before NotBefore.
    pub prepare_ahead: Duration,
    /// How long restoring may take after the event.
    pub restore_timeout: Duration,
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
            restore_timeout: Duration::from_mins(10),
            rules: Vec::new(),
        }
    }
}

/// What to do with events that name no member of this cluster.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Foreign {
    Observe,
    ApproveUser,
}

words!(Foreign { Observe => "observe", ApproveUser => "approve-user" });

/// One configured rule. An empty list and a missing range match everything.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Rule {
    pub name: String,
    pub kinds: Vec<Kind>,
    pub sources: Vec<Source>,
    pub resources: Vec<VmName>,
    pub duration: Option<Range>,
    pub notice: Option<Range>,
    pub action: Action,
    /// Left out: the default phases of the event's type.
    pub phases: Option<Vec<Phase>>,
    pub budget: Option<Duration>,
}

/// From `at_least` on, up to but without `below`. What is not known matches no range.
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

/// What is done with an event.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Action {
    Prepare,
    Approve,
    Observe,
}

words!(Action { Prepare => "prepare", Approve => "approve", Observe => "observe" });

/// What policy chose for one event, as it is committed.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Treatment {
    pub action: Action,
    /// The name of the rule that chose it.
    pub rule: String,
    pub phases: Vec<Phase>,
    /// Counted from the start of preparation; when it is spent the event is approved all the same.
    pub budget: Option<Duration>,
    /// Preparation waits until this long before NotBefore; `None` starts it at once.
    pub ahead: Option<Duration>,
    /// Only hooks that name a `min_freeze` of at most the event's duration apply.
    pub only_named_freezes: bool,
    pub margin: Duration,
    pub restore_timeout: Duration,
}

/// The cases the defaults tell apart; their names stand in the treatment as the rule that chose it.
mod default_rule {
    pub(super) const FOREIGN: &str = "default: foreign";
    pub(super) const ALREADY_STARTED: &str = "default: already started";
    pub(super) const USER: &str = "default: user-initiated";
    pub(super) const BRIEF_FREEZE: &str = "default: brief freeze";
    pub(super) const OTHER: &str = "default";
}

/// Chooses the treatment of an event as it is first seen.
pub fn choose(policy: &Policy, event: &Announcement, members: &[VmName], now: Timestamp) -> Treatment {
    let user = event.source == Source::User;
    let treatment = |action, rule: &str, phases: Vec<Phase>, budget| Treatment {
        action,
        rule: rule.into(),
        phases,
        budget,
        ahead: if user { None } else { Some(policy.prepare_ahead) },
        only_named_freezes: false,
        margin: policy.margin,
        restore_timeout: policy.restore_timeout,
    };
    if event.status == Status::Started {
        return treatment(Action::Prepare, default_rule::ALREADY_STARTED, alloc::vec![Phase::Failover], None);
    }
    if let Some(rule) = policy.rules.iter().find(|rule| rule.matches(event, now)) {
        let phases = rule.phases.clone().unwrap_or_else(|| default_phases(&event.kind));
        return treatment(rule.action, &rule.name, phases, rule.budget);
    }
    if !event.resources.iter().any(|resource| members.contains(resource)) {
        let action = if user && policy.foreign == Foreign::ApproveUser { Action::Approve } else { Action::Observe };
        return treatment(action, default_rule::FOREIGN, Vec::new(), None);
    }
    let phases = default_phases(&event.kind);
    if user {
        return treatment(Action::Prepare, default_rule::USER, phases, Some(policy.user_budget));
    }
    if event.kind == Kind::Freeze && event.duration.is_some_and(|duration| duration < policy.brief_freeze) {
        let brief = treatment(Action::Prepare, default_rule::BRIEF_FREEZE, phases, None);
        return Treatment { only_named_freezes: true, ..brief };
    }
    treatment(Action::Prepare, default_rule::OTHER, phases, None)
}

fn default_phases(kind: &Kind) -> Vec<Phase> {
    use Phase::{Checkpoint, Drain, Failover, Shutdown};
    match kind {
        Kind::Freeze => alloc::vec![Checkpoint, Failover, Drain],
        Kind::Reboot | Kind::Redeploy | Kind::Other(_) => alloc::vec![Checkpoint, Failover, Drain, Shutdown],
        Kind::Preempt => alloc::vec![Failover, Drain],
        Kind::Terminate => alloc::vec![Failover, Drain, Shutdown],
    }
}

impl Rule {
    fn matches(&self, event: &Announcement, now: Timestamp) -> bool {
        let notice = match event.not_before {
            NotBefore::At(at) => Some(at.since(now)),
            NotBefore::Unknown => None,
        };
        (self.kinds.is_empty() || self.kinds.contains(&event.kind))
            && (self.sources.is_empty() || self.sources.contains(&event.source))
            && (self.resources.is_empty() || event.resources.iter().any(|vm| self.resources.contains(vm)))
            && self.duration.is_none_or(|range| range.holds(event.duration))
            && self.notice.is_none_or(|range| range.holds(notice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: Kind, source: Source) -> Announcement {
        Announcement {
            id: super::super::id::EventId::new("e"),
            status: Status::Scheduled,
            kind,
            source,
            resource_type: String::new(),
            resources: alloc::vec![VmName::new("db-0")],
            not_before: NotBefore::At(Timestamp(600_000)),
            description: String::new(),
            duration: None,
        }
    }

    fn chosen(policy: &Policy, event: &Announcement) -> Treatment {
        choose(policy, event, &[VmName::new("db-0"), VmName::new("db-1")], Timestamp(0))
    }

    fn rule(name: &str) -> Rule {
        Rule {
            name: name.into(),
            kinds: Vec::new(),
            sources: Vec::new(),
            resources: Vec::new(),
            duration: None,
            notice: None,
            action: Action::Approve,
            phases: None,
            budget: None,
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        use Phase::{Checkpoint, Drain, Failover, Shutdown};
        let all: &[Phase] = &[Checkpoint, Failover, Drain, Shutdown];
        let freeze: &[Phase] = &[Checkpoint, Failover, Drain];
        let rows: [(Kind, &[Phase]); 6] = [
            (Kind::Freeze, freeze),
            (Kind::Reboot, all),
            (Kind::Redeploy, all),
            (Kind::Other("Relocate".into()), all),
            (Kind::Preempt, &[Failover, Drain]),
            (Kind::Terminate, &[Failover, Drain, Shutdown]),
        ];
        for (kind, phases) in rows {
            let by_platform = chosen(&Policy::default(), &event(kind.clone(), Source::Platform));
            assert_eq!((by_platform.action, by_platform.budget), (Action::Prepare, None), "{kind}");
            assert_eq!(by_platform.phases, phases, "{kind}");
            assert!(by_platform.ahead.is_some() && !by_platform.only_named_freezes, "{kind}");
            let by_user = chosen(&Policy::default(), &event(kind.clone(), Source::User));
            assert_eq!((by_user.budget, by_user.ahead), (Some(Duration::from_mins(2)), None), "{kind}");
            assert_eq!(by_user.phases, phases, "{kind}");
        }
    }

    #[test]
    fn a_freeze_is_brief_below_the_limit_only_and_when_its_duration_is_known() {
        for (seconds, brief) in [(Some(0), true), (Some(8), true), (Some(9), false), (None, false)] {
            let mut freeze = event(Kind::Freeze, Source::Platform);
            freeze.duration = seconds.map(Duration::from_secs);
            assert_eq!(chosen(&Policy::default(), &freeze).only_named_freezes, brief, "{seconds:?}");
        }
    }

    #[test]
    fn the_first_rule_that_matches_wins_and_the_unknown_matches_no_range() {
        let below = |seconds| Some(Range { at_least: None, below: Some(Duration::from_secs(seconds)) });
        let rules = alloc::vec![
            Rule { duration: below(30), ..rule("short") },
            Rule { notice: below(600), ..rule("soon") },
            Rule { sources: alloc::vec![Source::User], ..rule("user") },
            Rule { resources: alloc::vec![VmName::new("_DB-0")], kinds: alloc::vec![Kind::Reboot], ..rule("named") },
        ];
        let policy = Policy { rules, ..Policy::default() };
        let reboot = event(Kind::Reboot, Source::Platform);
        assert_eq!(chosen(&policy, &reboot).rule, "named");
        assert_eq!(chosen(&policy, &event(Kind::Reboot, Source::User)).rule, "user");
        assert_eq!(chosen(&policy, &event(Kind::Freeze, Source::Platform)).rule, "default");
        let short = Announcement { duration: Some(Duration::from_secs(29)), ..reboot.clone() };
        assert_eq!(chosen(&policy, &short).rule, "short");
        let soon = Announcement { not_before: NotBefore::At(Timestamp(599_999)), ..reboot.clone() };
        assert_eq!(chosen(&policy, &soon).rule, "soon");
        let whenever = Announcement { not_before: NotBefore::Unknown, ..reboot };
        assert_eq!(chosen(&policy, &whenever).rule, "named");
    }
}
