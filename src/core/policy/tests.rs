//! The defaults, the order of the rules, and the equality of the explained and the chosen treatment.

use super::*;

fn event(kind: EventType, source: Source) -> Announcement {
    Announcement {
        id: crate::model::id::EventId::new("e"),
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
    treatment_of(policy, event, &[VmName::new("db-0"), VmName::new("db-1")], Timestamp(0))
}

fn rule(name: &str) -> Rule {
    Rule {
        name: name.into(),
        event_types: Vec::new(),
        sources: Vec::new(),
        resources: Vec::new(),
        duration: None,
        notice: None,
        action: Action::Approve,
        phases: None,
        budget: None,
        prepare_ahead: None,
        window: None,
    }
}

#[test]
fn the_defaults_are_those_of_the_table() {
    use Phase::{Checkpoint, Drain, Failover, Shutdown};
    let all: &[Phase] = &[Checkpoint, Failover, Drain, Shutdown];
    let freeze: &[Phase] = &[Checkpoint, Failover, Drain];
    let rows: [(EventType, &[Phase]); 6] = [
        (EventType::Freeze, freeze),
        (EventType::Reboot, all),
        (EventType::Redeploy, all),
        (EventType::Other("Relocate".into()), all),
        (EventType::Preempt, &[Failover, Drain]),
        (EventType::Terminate, &[Failover, Drain, Shutdown]),
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
        let mut freeze = event(EventType::Freeze, Source::Platform);
        freeze.duration = seconds.map(Duration::from_secs);
        assert_eq!(chosen(&Policy::default(), &freeze).only_named_freezes, brief, "{seconds:?}");
    }
}

#[test]
fn a_recommendation_is_observed_unless_a_rule_names_it() {
    for source in [Source::Platform, Source::User] {
        for status in [Status::Scheduled, Status::Started] {
            let kind = EventType::parse("SpotRebalanceRecommendation");
            let advice = Announcement { status: status.clone(), ..event(kind.clone(), source.clone()) };
            let treatment = chosen(&Policy::default(), &advice);
            assert_eq!((treatment.action, &*treatment.rule), (Action::Observe, "default: recommendation"));
            let own = Rule { event_types: alloc::vec![kind], ..rule("move away early") };
            assert_eq!(
                chosen(&Policy { rules: alloc::vec![own], ..Policy::default() }, &advice).rule,
                "move away early"
            );
        }
    }
    assert_eq!(chosen(&Policy::default(), &event(EventType::parse("Hibernate"), Source::Platform)).rule, "default");
}

#[test]
fn the_first_rule_that_matches_wins_and_the_unknown_matches_no_range() {
    let below = |seconds| Some(Range { at_least: None, below: Some(Duration::from_secs(seconds)) });
    let rules = alloc::vec![
        Rule { duration: below(30), ..rule("short") },
        Rule { notice: below(600), ..rule("soon") },
        Rule { sources: alloc::vec![Source::User], ..rule("user") },
        Rule {
            resources: alloc::vec![VmName::new("_DB-0")],
            event_types: alloc::vec![EventType::Reboot],
            ..rule("named")
        },
    ];
    let policy = Policy { rules, ..Policy::default() };
    let reboot = event(EventType::Reboot, Source::Platform);
    assert_eq!(chosen(&policy, &reboot).rule, "named");
    assert_eq!(chosen(&policy, &event(EventType::Reboot, Source::User)).rule, "user");
    assert_eq!(chosen(&policy, &event(EventType::Freeze, Source::Platform)).rule, "default");
    let short = Announcement { duration: Some(Duration::from_secs(29)), ..reboot.clone() };
    assert_eq!(chosen(&policy, &short).rule, "short");
    let soon = Announcement { not_before: NotBefore::At(Timestamp(599_999)), ..reboot.clone() };
    assert_eq!(chosen(&policy, &soon).rule, "soon");
    let whenever = Announcement { not_before: NotBefore::Unknown, ..reboot };
    assert_eq!(chosen(&policy, &whenever).rule, "named");
}

#[test]
fn every_case_before_the_one_that_matches_is_told_with_its_first_condition_that_does_not_hold() {
    let freezes =
        Rule { event_types: alloc::vec![EventType::Freeze], sources: alloc::vec![Source::User], ..rule("freezes") };
    let elsewhere = Rule { resources: alloc::vec![VmName::new("db-7")], ..rule("elsewhere") };
    let policy = Policy { rules: alloc::vec![freezes, elsewhere], ..Policy::default() };
    let freeze = event(EventType::Freeze, Source::Platform);
    let choice = explain(&policy, &freeze, &[VmName::new("db-0")], Timestamp(0));
    let told: Vec<_> = choice.passed_over.iter().map(|(case, unmet)| (case.name(), *unmet)).collect();
    let brief = Range { at_least: None, below: Some(policy.brief_freeze) };
    let expected = [
        ("default: already started", PolicyCondition::Started),
        ("freezes", PolicyCondition::Source(&policy.rules[0].sources)),
        ("elsewhere", PolicyCondition::Resources(&policy.rules[1].resources)),
        ("default: recommendation", PolicyCondition::Recommendation(true)),
        ("default: foreign", PolicyCondition::Foreign),
        ("default: user-initiated", PolicyCondition::Source(&[Source::User])),
        ("default: brief freeze", PolicyCondition::Duration(brief)),
    ];
    assert_eq!(told, expected);
    assert_eq!(choice.case.name(), "default");
    assert_eq!(choice.treatment.rule, "default");
}

#[test]
fn a_rule_may_prepare_earlier_than_the_policy() {
    let hours = Duration::from_hours;
    let early = Rule {
        event_types: alloc::vec![EventType::Redeploy],
        action: Action::Prepare,
        prepare_ahead: Some(hours(6)),
        ..rule("early")
    };
    let policy = Policy { rules: alloc::vec![early], ..Policy::default() };
    let ahead = |kind, source| chosen(&policy, &event(kind, source)).ahead;
    assert_eq!(ahead(EventType::Redeploy, Source::Platform), Some(hours(6)));
    assert_eq!(ahead(EventType::Redeploy, Source::User), Some(hours(6)));
    assert_eq!(ahead(EventType::Reboot, Source::Platform), Some(policy.prepare_ahead));
    assert_eq!(ahead(EventType::Reboot, Source::User), None);
}
