//! The agenda of a round: the events and the faults, all decided by the seed before the round begins.

use std::time::Duration;

use serde_json::{Value, json};

use super::super::dice::Dice;

/// An order, and the time of the announcement after the beginning.
pub(super) struct Announcement {
    pub(super) at: Duration,
    pub(super) order: Value,
}

/// A fault with targets, begin and duration.
#[derive(Clone, Debug)]
pub(super) struct Stroke {
    pub(super) at: Duration,
    pub(super) lasts: Duration,
    pub(super) fault: Fault,
}

#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// These replicas are killed, and started again at the fault's end.
    Kill(Vec<usize>),
    /// These replicas are stopped, and continue at the fault's end.
    Freeze(Vec<usize>),
    /// The two replicas receive nothing from each other.
    Cut(usize, usize),
    CutOff(usize),
    CutOffLoudly(usize),
    /// No peer receives from the replica.
    Mute(usize),
    /// The replica receives from no peer.
    Deafen(usize),
    SlowDown(usize, Duration),
    FillDisk(usize),
    FailSync(usize),
    /// The replica's wall clock jumps by so many seconds, and back at the end.
    Clock(usize, i64),
    /// The metadata service of these VMs answers so, for the duration or for a number of requests.
    Answers(Vec<usize>, Value),
}

impl Fault {
    /// The name under which the fault is counted. Each kind has at most one fault at a time.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Kill(_) => "replicas are killed",
            Self::Freeze(_) => "replicas are paused",
            Self::Cut(..) | Self::CutOff(_) | Self::CutOffLoudly(_) => "links are cut",
            Self::Mute(_) | Self::Deafen(_) => "links are cut one way",
            Self::SlowDown(..) => "links are slow",
            Self::FillDisk(_) => "a disk is full",
            Self::FailSync(_) => "a sync fails",
            Self::Clock(..) => "clock jumps",
            Self::Answers(..) => "metadata answers badly",
        }
    }

    /// True for equal kinds, and if both change links, because all links are healed together.
    fn excludes(&self, other: &Self) -> bool {
        let is_of_links = |fault: &Self| fault.kind().starts_with("links");
        self.kind() == other.kind() || (is_of_links(self) && is_of_links(other))
    }
}

const REPLICAS: u64 = 3;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn place(dice: &mut Dice) -> usize {
    usize::try_from(dice.below(REPLICAS)).unwrap()
}

/// Mostly a single place, sometimes two, and now and then all three.
fn places(dice: &mut Dice) -> Vec<usize> {
    let (first, count) = (place(dice), [1, 1, 1, 1, 1, 1, 2, 2, 2, 3][usize::try_from(dice.below(10)).unwrap()]);
    (0..count).map(|next| (first + next) % 3).collect()
}

/// Events of every kind, some of them for the same group at the same time.
pub(super) fn announcements(dice: &mut Dice, span: Duration) -> Vec<Announcement> {
    let mut found = Vec::new();
    let mut at = ms(500);
    while at < span {
        found.push(Announcement { at, order: order(dice) });
        // Now and then in quick succession.
        at += if dice.percent(35) { ms(dice.below(400)) } else { ms(dice.between(3_000, 10_000)) };
    }
    found
}

fn order(dice: &mut Dice) -> Value {
    let kind = dice.of(&["Freeze", "Reboot", "Redeploy", "Preempt", "Reboot", "Redeploy", "Relocate"]);
    let source = dice.of(&["User", "Platform"]);
    let mut vms: Vec<Value> = vec![json!(place(dice))];
    if dice.percent(15) {
        vms.push(json!((vms[0].as_u64().unwrap() + 1) % REPLICAS));
    }
    if dice.percent(8) {
        vms.push(json!("elsewhere-7"));
    }
    if dice.percent(4) {
        vms = vec![json!("elsewhere-8")];
    }
    let mut order = json!({
        "type": kind, "source": source, "vms": vms,
        "notice": dice.between(8_000, 45_000),
        "duration_s": dice.of(&[-1, 0, 5, 9, 30]),
        // So long that logs grow, and a full disk is noticed.
        "description": "x".repeat(usize::try_from(dice.below(4_000)).unwrap()),
        "start_delay": dice.below(1_500),
        "other_tenants": if dice.percent(20) { dice.below(4_000) } else { 0 },
        "impact": dice.between(100, 3_000),
        "linger": dice.below(1_500),
        "late": if dice.percent(20) { dice.below(4_000) } else { 0 },
    });
    let mut sometimes = |share: u64, name: &str, from: u64, to: u64| {
        if dice.percent(share) {
            order[name] = json!(dice.between(from, to));
        }
    };
    sometimes(18, "cancel_after", 300, 12_000);
    sometimes(6, "approved_after", 500, 10_000);
    sometimes(6, "strikes_after", 500, 10_000);
    if dice.percent(5) {
        order["opens"] = json!("Started");
    }
    if dice.percent(12) {
        order["moves"] = json!([{ "after": dice.between(500, 5_000), "notice": dice.between(2_000, 20_000) }]);
    }
    if dice.percent(10) {
        order["seen_by"] = json!([place(dice)]);
    }
    order
}

/// Faults in sequence, each beside the faults still in force.
pub(super) fn strokes(dice: &mut Dice, span: Duration, may: impl Fn(&Fault) -> bool) -> Vec<Stroke> {
    let mut found: Vec<Stroke> = Vec::new();
    let mut at = ms(3_000);
    while at < span {
        let (fault, lasts) = fault(dice);
        let in_force = |earlier: &Stroke| earlier.at + earlier.lasts + ms(300) > at;
        let is_free = found.iter().filter(|earlier| in_force(earlier)).all(|earlier| !earlier.fault.excludes(&fault));
        if is_free && may(&fault) {
            found.push(Stroke { at, lasts: lasts.min(span.saturating_sub(at)), fault });
        }
        at += ms(dice.between(500, 6_000));
    }
    found
}

/// An event and faults that would tempt the remaining replica to approve without a quorum.
pub(super) struct Desertion {
    pub(super) order: Value,
    pub(super) strokes: Vec<Stroke>,
    pub(super) halting: Halting,
}

/// Whether an operator wants nothing approved meanwhile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Halting {
    Nothing,
    /// Everything, before anything is announced.
    Pause,
    /// The announced event.
    Hold,
}

pub(super) fn desertion(dice: &mut Dice) -> Desertion {
    let (kind, source) = (dice.of(&["Reboot", "Redeploy", "Freeze"]), dice.of(&["User", "User", "User", "Platform"]));
    let order = json!({
        "type": kind, "source": source, "vm": place(dice), "notice": 60_000, "start_delay": dice.below(1_500),
        "impact": 500,
    });
    let left = place(dice);
    let others = vec![(left + 1) % 3, (left + 2) % 3];
    let lasts = ms(dice.between(12_000, 16_000));
    let gone = match dice.below(4) {
        0 => Fault::Kill(others.clone()),
        1 => Fault::Freeze(others.clone()),
        2 => Fault::CutOff(left),
        _ => Fault::CutOffLoudly(left),
    };
    let mut strokes = vec![Stroke { at: ms(dice.below(800)), lasts, fault: gone.clone() }];
    if let Fault::CutOff(_) | Fault::CutOffLoudly(_) = gone {
        // The other replicas could decide, and cannot post.
        let answers = json!({ "fault": { "kind": dice.of(&["reset", "request_lost", "empty"]) }, "on": "both" });
        strokes.insert(0, Stroke { at: ms(0), lasts, fault: Fault::Answers(others, answers) });
    }
    let halting = dice.of(&[Halting::Nothing, Halting::Nothing, Halting::Pause, Halting::Hold]);
    Desertion { order, strokes, halting }
}

fn fault(dice: &mut Dice) -> (Fault, Duration) {
    let away = if dice.percent(10) { dice.between(8_000, 20_000) } else { dice.between(50, 6_000) };
    match dice.below(14) {
        0 | 1 => (Fault::Kill(places(dice)), ms(away)),
        2 | 3 => (Fault::Freeze(places(dice)), ms(away)),
        4 => {
            let one = place(dice);
            (Fault::Cut(one, (one + 1) % 3), ms(away))
        }
        5 => (Fault::CutOff(place(dice)), ms(away)),
        6 => (Fault::CutOffLoudly(place(dice)), ms(away)),
        7 => (dice.of(&[Fault::Mute as fn(usize) -> Fault, Fault::Deafen])(place(dice)), ms(away)),
        8 => (Fault::SlowDown(place(dice), ms(dice.between(20, 700))), ms(dice.between(2_000, 12_000))),
        9 => (Fault::FillDisk(place(dice)), ms(dice.between(1_000, 8_000))),
        10 => (Fault::FailSync(place(dice)), ms(8_000)),
        11 => (Fault::Clock(place(dice), dice.of(&[-600, -30, -5, 5, 10, 25])), ms(dice.between(2_000, 15_000))),
        _ => answers(dice),
    }
}

/// Documents may differ for half of `takeover_after`; a stale document is limited to this by the count of requests.
fn answers(dice: &mut Dice) -> (Fault, Duration) {
    let on = if dice.percent(60) { places(dice) } else { vec![0, 1, 2] };
    let simple = ["hang", "empty", "html", "error_json", "malformed", "truncated", "reset", "redirect"];
    let mut order = match dice.below(14) {
        0..8 => {
            json!({ "fault": { "kind": dice.of(&simple) }, "on": dice.of(&["get", "get", "both", "both", "post"]) })
        }
        8 => json!({ "fault": { "kind": "status", "status": dice.of(&[400, 410, 429, 500, 503]) } }),
        9 => json!({ "fault": { "kind": "slow", "ms": dice.between(100, 4_000) } }),
        10 => json!({ "fault": { "kind": "stale" }, "on": "get", "times": 3 }),
        11 => json!({ "fault": { "kind": "reply_lost" }, "on": "post", "times": dice.between(1, 3) }),
        12 => json!({ "fault": { "kind": "request_lost" }, "on": "post", "times": dice.between(1, 3) }),
        _ => json!({ "fault": { "kind": "late_effect", "ms": dice.between(100, 5_000) }, "on": "post", "times": 1 }),
    };
    if order["fault"]["kind"] == "hang" {
        // A request that hangs does so until the client's timeout.
        order["times"] = json!(dice.between(1, 3));
    }
    (Fault::Answers(on, order), ms(dice.between(1_000, 10_000)))
}
