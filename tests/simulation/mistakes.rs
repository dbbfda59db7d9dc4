//! Deliberate mistakes: each is detected by the property named for the mistake.

use std::time::Duration;

use allclear::simulator::cloud::EventPlan;
use allclear::simulator::{
    ConfigChange, Fault, FaultClass, FaultKind, Mutation, Property, Scenario, ScenarioAction, ScenarioStep,
    TriggerPoint, generate, run,
};

/// Each mistake shows within this number of seeds.
pub(crate) const WITHIN: u64 = 3_000;

/// The seed of the last detection, unless among the first seeds; tried before the other seeds to save time.
const FIRST: [(Mutation, u64); 8] = [
    (Mutation::PostUnconfirmed, 58),
    (Mutation::LostRunAgain, 40),
    (Mutation::UnknownRunAgain, 262),
    (Mutation::BadReadDoesNotInterrupt, 1_405),
    (Mutation::EmptyIsNoEvents, 86),
    (Mutation::JournalSkipped, 41),
    (Mutation::JournalLost, 41),
    (Mutation::PauseCounts, 82),
];

const HOUR: Duration = Duration::from_hours(1);

#[test]
fn every_mistake_is_seen() {
    for (mistake, property) in Mutation::ALL {
        let seen = seen(mistake, property);
        assert!(seen.is_some(), "{mistake:?} does not break {property:?} in {WITHIN} seeds");
        println!("{mistake:?} breaks {property:?} under seed {}", seen.unwrap_or_default());
    }
}

/// The first seed which shows the mistake.
pub(crate) fn seen(mistake: Mutation, property: Property) -> Option<u64> {
    let shows = |seed: &u64| {
        let is_of_time = mistake == Mutation::PlatformUnheard;
        let scenario = if is_of_time { with_a_wrong_clock(*seed) } else { aimed(mistake, *seed) };
        let run = run(&scenario, mistake, false);
        run.breach().is_some_and(|breach| breach.property == property)
    };
    let known = FIRST.iter().filter(|(known, _)| *known == mistake).map(|(_, seed)| *seed);
    known.chain(0..WITHIN).find(shows)
}

/// The scenario of a seed, where one clock is a day ahead from the beginning on.
fn with_a_wrong_clock(seed: u64) -> Scenario {
    let mut scenario = generate(seed);
    scenario.are_answers_dated = true;
    scenario.clocks = vec![0; scenario.replicas];
    scenario.clocks[0] = 24 * 3_600_000;
    scenario
}

/// The scenario of a seed, with faults which bring the mistake out where chance seldom does.
fn aimed(mistake: Mutation, seed: u64) -> Scenario {
    let mut scenario = generate(seed);
    if add_faults(mistake, seed, &mut scenario) {
        for happening in &mut scenario.happenings {
            if let ScenarioAction::Announce(plan) = &mut happening.what {
                wait_for_approval(plan);
            }
        }
    }
    scenario
}

/// False where the mutation needs no fault.
fn add_faults(mistake: Mutation, seed: u64, scenario: &mut Scenario) -> bool {
    let vm = usize::try_from(seed).unwrap_or_default() % scenario.replicas;
    let (secs, replicas) = (Duration::from_secs, scenario.replicas);
    let offset = Duration::from_millis(3 + seed % 17);
    let first = scenario
        .happenings
        .iter()
        .find(|it| matches!(it.what, ScenarioAction::Announce(_)))
        .map_or(secs(20), |it| it.at);
    let mut add =
        |at, after, fault| scenario.happenings.push(ScenarioStep { at, after, what: ScenarioAction::Fault(fault) });
    let fault = |lasts, kind| Fault { vm, lasts, kind };
    let cut = |lasts| fault(secs(lasts), FaultKind::Cut { vms: vec![vm], both: true });
    let everywhere = |trouble, lasts| {
        (0..replicas).map(move |vm| Fault { vm, lasts: secs(lasts), kind: FaultKind::Endpoint(trouble) })
    };
    let pause = |lasts| fault(secs(lasts), FaultKind::Pause { stops_clock: false });
    match mistake {
        // The approver is paused before it has read its claim, or while the claim is confirmed; meanwhile another
        // replica posts.
        Mutation::PostUnconfirmed => add(Duration::ZERO, Some(TriggerPoint::Claim(1)), pause(20)),
        Mutation::LeaseUnchecked => add(Duration::from_millis(seed % 3), Some(TriggerPoint::Confirm(1)), pause(20)),
        // The affected replica has never been heard.
        Mutation::UnregisteredIgnored => add(Duration::ZERO, None, cut(90)),
        Mutation::NothingInherited => {
            let crash = fault(Duration::from_millis(900), FaultKind::Crash { whole: false });
            add(offset, Some(TriggerPoint::Post(1)), crash);
        }
        Mutation::NewDiskUnnoticed => {
            let lost = fault(Duration::from_millis(900), FaultKind::DiskLost);
            add(secs(1), Some(TriggerPoint::Begin(1)), lost);
        }
        Mutation::FormerForgotten => {
            add(secs(1), Some(TriggerPoint::Begin(1)), fault(secs(1), FaultKind::Reconfigured(ConfigChange::Renamed)));
        }
        Mutation::HookUnconfirmed => add(Duration::ZERO, Some(TriggerPoint::Begin(1)), pause(55)),
        Mutation::PauseCounts => {
            everywhere(FaultClass::PostsLost, 60).take(2).for_each(|fault| add(first, None, fault));
            // A pause short enough for the document from before the pause to be still fresh.
            add(first + secs(3), None, pause(13));
            // The replica has no contact after the pause either, for less time than the required wait.
            add(first + secs(15), None, cut(6));
        }
        Mutation::TakeoverByMinority => add(first, None, cut(60)),
        Mutation::TakeoverDuringHooks => {
            add(offset, Some(TriggerPoint::Begin(1)), fault(secs(60), FaultKind::Cut { vms: vec![0], both: true }));
            scenario.habits.takes = (20_000, 35_000);
        }
        Mutation::DecisionUnchecked => {
            everywhere(FaultClass::Whole, 15)
                .for_each(|fault| add(Duration::ZERO, Some(TriggerPoint::Claim(1)), fault));
        }
        Mutation::NeverExpires => {
            add(offset, Some(TriggerPoint::Begin(1)), fault(HOUR, FaultKind::Crash { whole: true }));
            scenario.heal_at = first + secs(200);
        }
        Mutation::NeverClaimsAgain => {
            everywhere(FaultClass::PostsLost, 15)
                .for_each(|fault| add(Duration::ZERO, Some(TriggerPoint::Claim(1)), fault));
            scenario.heal_at = first + secs(30);
        }
        Mutation::IncarnationRules => {
            add(scenario.heal_at.saturating_sub(secs(1)), None, fault(Duration::ZERO, FaultKind::Incarnations));
        }
        _ => return false,
    }
    true
}

/// The event stays Scheduled for a while after its approval, and does not start by itself.
fn wait_for_approval(plan: &mut EventPlan) {
    plan.other_tenants = Duration::from_mins(1);
    plan.notice = Duration::from_mins(10);
    (plan.cancel_after, plan.approved_after, plan.strikes_after) = (None, None, None);
}
