//! Generates a scenario from a seed. Events of one group are close together more often than by chance: most failures
//! need two events.

mod workloads;

use std::time::Duration;

use self::workloads::{habits, workload, workloads};
use super::cloud::{EventPlan, Opening, ScheduleMove};
use super::faults::fault;
use super::random::Random;
use super::scenario::{
    ConfigChange, Fault, FaultKind, Scenario, ScenarioAction, ScenarioRequest, ScenarioStep, TriggerPoint,
};
use super::world::name;
use allclear_core::model::document::{EventType, Source};
use allclear_core::model::id::VmName;
use allclear_core::model::workload::{Origin, Phase, Role};
use allclear_core::planning_input::Timing;
use allclear_core::policy::Policy;

/// In milliseconds.
const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;

pub fn generate(seed: u64) -> Scenario {
    let mut random = Random::new(seed);
    let replicas = random.weighted(&[(5, 1), (32, 2), (38, 3), (6, 4), (12, 5), (3, 6), (4, 7)]);
    let heal_at = random.secs(60, 300);
    let policy = Policy {
        user_budget: random.secs(10, 60),
        give_back_after: random.secs(10, 120),
        last_call: random.secs(10, 60),
        prepare_ahead: if random.percent(85) { Duration::from_mins(15) } else { random.secs(20, 120) },
        ..Policy::default()
    };
    let timing =
        Timing { forget_after: Duration::from_mins(5), replace_after: Duration::from_secs(30), ..Timing::default() };
    let mut scenario = Scenario {
        seed,
        replicas,
        voters: replicas,
        max_unavailable: if replicas > 2 && random.percent(15) { 2 } else { 1 },
        policy,
        timing,
        workloads: workloads(&mut random, replicas),
        habits: habits(&mut random),
        clocks: (0..replicas).map(|_| clock(&mut random)).collect(),
        are_answers_dated: true,
        happenings: Vec::new(),
        heal_at,
    };
    let announced = events(&mut random, &mut scenario);
    roles(&mut random, &mut scenario);
    operator_requests(&mut random, &mut scenario, &announced);
    guests(&mut random, &mut scenario);
    let faults = if random.percent(10) { 0 } else { random.between(1, 7) };
    for _ in 0..faults {
        let after = random.percent(45).then(|| moment(&mut random));
        let at = near(&mut random, &announced, heal_at);
        let at = if after.is_some() { random.millis(0, 40) } else { at };
        let fault = fault(&mut random, replicas);
        scenario.happenings.push(ScenarioStep { at, after, what: ScenarioAction::Fault(fault) });
    }
    disks_and_learners(&mut Random::new(seed ^ 0x5851_F42D_4C95_7F2D), &mut scenario);
    reconfiguration(&mut Random::new(seed ^ 0x1405_7B7E_F767_814F), &mut scenario);
    time(&mut Random::new(seed ^ 0x2545_F491_4F6C_DD1D), &mut scenario);
    scenario.happenings.sort_by_key(|happening| happening.at);
    scenario
}

/// Chooses the voters, and perhaps a disk loss. Drawn separately, so that all other draws are unchanged.
fn disks_and_learners(random: &mut Random, scenario: &mut Scenario) {
    let (replicas, heal_at) = (scenario.replicas, scenario.heal_at);
    if replicas > 3 && random.percent(50) {
        scenario.voters = if replicas > 5 && random.percent(50) { 5 } else { 3 };
    }
    let is_deletion =
        |it: &ScenarioStep| matches!(&it.what, ScenarioAction::Announce(plan) if plan.kind == EventType::Terminate);
    let loses = random.percent(12) && replicas > 2 && !scenario.happenings.iter().any(is_deletion);
    if loses {
        let latest = u64::try_from(heal_at.as_millis()).unwrap_or(0);
        let (at, lasts) = (random.millis(5_000, latest), random.secs(1, 60));
        let what = ScenarioAction::Fault(Fault { vm: random.index(replicas), lasts, kind: FaultKind::DiskLost });
        scenario.happenings.push(ScenarioStep { at, after: None, what });
    }
}

/// Perhaps the configuration of a replica changes, with a restart. Drawn separately as well.
fn reconfiguration(random: &mut Random, scenario: &mut Scenario) {
    if !random.percent(15) {
        return;
    }
    let latest = u64::try_from(scenario.heal_at.as_millis()).unwrap_or(0);
    let phase = *random.pick(&[Phase::Checkpoint, Phase::Drain, Phase::Restore]);
    let changes = [
        ConfigChange::OneMore(phase),
        ConfigChange::Otherwise,
        ConfigChange::Renamed,
        ConfigChange::WithoutRestore,
        ConfigChange::Removed,
    ];
    let kind = FaultKind::Reconfigured(*random.pick(&changes));
    let fault = Fault { vm: random.index(scenario.replicas), lasts: random.millis(500, 5_000), kind };
    let at = random.millis(5_000, latest);
    scenario.happenings.push(ScenarioStep { at, after: None, what: ScenarioAction::Fault(fault) });
}

/// Perhaps a clock is wrong by up to a day, and endpoints do not return the time. Drawn separately, so that all other
/// draws are unchanged.
fn time(random: &mut Random, scenario: &mut Scenario) {
    scenario.are_answers_dated = random.percent(80);
    if random.percent(20) {
        let most = *random.pick(&[HOUR, DAY]);
        let ahead = i64::try_from(random.below(2 * most)).unwrap_or(0) - i64::try_from(most).unwrap_or(0);
        scenario.clocks = vec![0; scenario.replicas];
        scenario.clocks[random.index(scenario.replicas)] = ahead;
    }
}

/// Close to the announcement of an event, or at any time.
fn near(random: &mut Random, announced: &[Duration], heal_at: Duration) -> Duration {
    let latest = u64::try_from(heal_at.as_millis()).unwrap_or(0).saturating_sub(1000);
    if announced.is_empty() || random.percent(35) {
        return random.millis(3000, latest);
    }
    let event = *random.pick(announced);
    let at = (event + random.secs(0, 60)).saturating_sub(Duration::from_secs(20));
    at.clamp(Duration::from_secs(3), Duration::from_millis(latest))
}

fn moment(random: &mut Random) -> TriggerPoint {
    let times = random.weighted(&[(60, 1), (25, 2), (15, 3)]);
    *random.pick(&[
        TriggerPoint::Claim(times),
        TriggerPoint::Begin(times),
        TriggerPoint::Confirm(times),
        TriggerPoint::Post(times),
    ])
}

fn clock(random: &mut Random) -> i64 {
    let most = random.weighted(&[(70, 50), (20, 5_000), (10, 120_000)]);
    i64::try_from(random.below(2 * most)).unwrap_or(0) - i64::try_from(most).unwrap_or(0)
}

/// Adds the events, and returns the time of each announcement.
fn events(random: &mut Random, scenario: &mut Scenario) -> Vec<Duration> {
    let latest = scenario.heal_at.as_secs().saturating_sub(20);
    let mut first = random.secs(8, latest.max(9));
    let count = random.weighted(&[(25, 1), (40, 2), (25, 3), (10, 4)]);
    let is_close = random.percent(65);
    let mut next_vm = random.index(scenario.replicas);
    let mut deletes = scenario.replicas > 2;
    let mut announced = Vec::new();
    for _ in 0..count {
        let plan = plan(random, scenario.replicas, next_vm, &mut deletes);
        scenario.happenings.push(ScenarioStep {
            at: first,
            after: None,
            what: ScenarioAction::Announce(Box::new(plan)),
        });
        announced.push(first);
        next_vm = (next_vm + 1) % scenario.replicas;
        first = if is_close { first + random.secs(0, 15) } else { random.secs(8, latest.max(9)) };
    }
    announced
}

fn plan(random: &mut Random, replicas: usize, vm: usize, deletes: &mut bool) -> EventPlan {
    let mut kind = random.weighted(&[
        (25, EventType::Freeze),
        (30, EventType::Reboot),
        (25, EventType::Redeploy),
        (8, EventType::Preempt),
        (6, EventType::Terminate),
        (4, EventType::Other("Something".into())),
    ]);
    if kind == EventType::Terminate && !std::mem::take(deletes) {
        kind = EventType::Reboot;
    }
    let source = if random.percent(55) { Source::User } else { Source::Platform };
    let mut resources: Vec<VmName> = vec![name(vm)];
    if kind != EventType::Terminate && random.percent(10) {
        resources.push(name((vm + 1) % replicas));
        resources.dedup();
    } else if random.percent(4) {
        resources = vec![VmName::new("somebody-else")];
    }
    let notice = if kind == EventType::Preempt { random.secs(20, 30) } else { random.secs(30, 240) };
    let after = |random: &mut Random, percent: u64| random.percent(percent).then(|| random.secs(2, 90));
    EventPlan {
        duration: (kind == EventType::Freeze && random.percent(60)).then(|| random.secs(1, 20)),
        notice,
        opening: if random.percent(4) { Opening::Started } else { Opening::Scheduled },
        start_delay: random.millis(200, 4000),
        other_tenants: if random.percent(15) { random.secs(5, 60) } else { Duration::ZERO },
        late: if random.percent(20) { random.secs(1, 20) } else { Duration::ZERO },
        impact: random.secs(1, 25),
        linger: random.secs(1, 8),
        cancel_after: after(random, 10),
        approved_after: after(random, 8),
        strikes_after: after(random, 6),
        moves: after(random, 10)
            .map(|after| ScheduleMove { after, notice: random.secs(10, 120) })
            .into_iter()
            .collect(),
        ..EventPlan::new(kind, source, resources)
    }
}

/// Perhaps a workload is the primary, and loses the role.
fn roles(random: &mut Random, scenario: &mut Scenario) {
    if random.percent(40) {
        return;
    }
    let primary = random.index(scenario.replicas);
    for vm in 0..scenario.replicas {
        let role = if vm == primary { Role::Primary } else { Role::Replica };
        scenario.happenings.push(ScenarioStep {
            at: Duration::from_millis(1),
            after: None,
            what: ScenarioAction::Role(vm, role),
        });
    }
    if random.percent(20) {
        let at = random.millis(5000, u64::try_from(scenario.heal_at.as_millis()).unwrap_or(5000));
        let next = random.index(scenario.replicas);
        for (vm, role) in [(primary, Role::Replica), (next, Role::Primary)] {
            scenario.happenings.push(ScenarioStep { at, after: None, what: ScenarioAction::Role(vm, role) });
        }
    }
}

fn operator_requests(random: &mut Random, scenario: &mut Scenario, announced: &[Duration]) {
    if random.percent(70) {
        return;
    }
    for _ in 0..random.between(1, 3) {
        let (place, span) = (random.index(3), random.secs(5, 60));
        let start = if random.percent(50) { Duration::ZERO } else { random.secs(1, 60) };
        let wish = random.weighted(&[
            (30, ScenarioRequest::Hold(place, span)),
            (10, ScenarioRequest::Release(place)),
            (20, ScenarioRequest::Pause(span)),
            (5, ScenarioRequest::Resume),
            (20, ScenarioRequest::Approve(place)),
            (15, ScenarioRequest::Skip(place)),
            (15, ScenarioRequest::Retry(place)),
            (15, ScenarioRequest::Prepare(place, start)),
        ]);
        let at = near(random, announced, scenario.heal_at);
        let what = ScenarioAction::Wish(random.index(scenario.replicas), wish);
        scenario.happenings.push(ScenarioStep { at, after: None, what });
    }
}

/// A session workload, perhaps in place of a configured workload, that connects and disconnects.
fn guests(random: &mut Random, scenario: &mut Scenario) {
    if random.percent(75) {
        return;
    }
    let vm = random.index(scenario.replicas);
    let name = if random.percent(50) { "x" } else { "guest" };
    let guest = workload(random, name, None, Origin::Session { owner: 0 });
    let mut at = random.secs(1, 30);
    for turn in 0..random.between(1, 4) {
        let what = if turn % 2 == 0 {
            ScenarioAction::Come(vm, Box::new(guest.clone()))
        } else {
            ScenarioAction::Go(vm, random.percent(30))
        };
        scenario.happenings.push(ScenarioStep { at, after: None, what });
        at += random.secs(2, 60);
    }
    // In the end the workload is connected, or deregistered: no event waits for the workload indefinitely.
    let what =
        if random.percent(70) { ScenarioAction::Come(vm, Box::new(guest)) } else { ScenarioAction::Go(vm, true) };
    scenario.happenings.push(ScenarioStep { after: None, at: at.max(scenario.heal_at), what });
}
