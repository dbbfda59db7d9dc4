//! Claim: a metadata service that lies for an hour costs a bounded number of bytes, of the state and of the log, and no
//! true event is lost: open events stay open, events announced meanwhile are prepared for and approved, closed events
//! are remembered.

use std::time::Duration;

use allclear::core::allowance::Allowance;
use allclear::core::apply::apply;
use allclear::core::model::bytes::{ANNOUNCEMENT_BYTES, DOCUMENT_BYTES};
use allclear::core::model::command::{ApplyResult, Command, Entry, Rejection, ReportDocument, RequestAction};
use allclear::core::model::document::{Announcement, Document, EventType, NotBefore, Source, Status};
use allclear::core::model::event::Event;
use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::lifecycle::Stage;
use allclear::core::model::operator::OperatorRequest;
use allclear::core::model::state::State;
use allclear::core::model::time::Timestamp;
use allclear::core::observation::{Observation, Patience, Poll, PollTime, concerns_us};
use allclear::core::plan::plan;
use allclear::wire::log::{decode_state, encode_entry, encode_state};
use allocation_counter::measure;

use super::world::{VMS, World, outcomes};

const HOUR: u64 = 3_600;
/// Maximum memory for the state of one replica.
const MOST_OF_STATE: u64 = 32 << 20;
/// Maximum size of a snapshot.
const MOST_OF_SNAPSHOT: usize = 24 << 20;
/// Maximum log bytes of all replicas: a constant part, and a part for each poll; 203 MiB in an hour.
const MOST_OF_LOG: [u64; 2] = [6 << 20, 56 << 10];
/// Number of polls for which each lie lasts.
const LIE_LASTS: u64 = 12;
const LIES: u64 = 9;
/// Number of polls in which a true event is announced, starts and ends.
const LIFE: u64 = 100;
/// The lie about our VMs: a replica that believes the lie stores as much as for true events.
const OF_OURS: u64 = 4;
/// An event from before the lies, held by an operator.
const HELD: &str = "held";

/// A pseudorandom number, identical in every run.
fn dice(of: u64) -> u64 {
    let mut mixed = of.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

fn announced(id: &str, status: Status, vms: Vec<VmName>) -> Announcement {
    Announcement {
        id: EventId::new(id),
        status,
        kind: EventType::Reboot,
        source: Source::Platform,
        resource_type: "VirtualMachine".into(),
        resources: vms,
        not_before: NotBefore::Unknown,
        description: "Host server is undergoing maintenance.".into(),
        duration: None,
    }
}

fn strangers(count: u64, from: u64) -> Vec<VmName> {
    (0..count).map(|number| VmName::new(&format!("s{}", dice(from + number)))).collect()
}

/// The invented events for one replica at one poll.
fn lies(poll: u64, replica: u64) -> Vec<Announcement> {
    let (lie, own) = (poll / LIE_LASTS % LIES, dice(poll * 8 + replica));
    let scheduled = |id: String, vms| announced(&id, Status::Scheduled, vms);
    match lie {
        // As many events as fit, different at each poll.
        0 => (0..1_000).map(|number| scheduled(format!("{number}-{poll}"), strangers(1, own + number))).collect(),
        // Events of the maximum size, different at each poll and at each replica.
        1 => (0..16).map(|number| scheduled(format!("{number}-{own}"), strangers(900, own + number))).collect(),
        // Constant ids with different VMs at each poll.
        2 => (0..16).map(|number| scheduled(format!("same-{number}"), strangers(900, own + number))).collect(),
        // Long texts.
        3 => {
            let text = |length: usize, of: u64| format!("{of:016x}").repeat(length / 16);
            let texts = |number| Announcement {
                kind: EventType::Other(text(256, own)),
                resource_type: text(256, own),
                description: text(1_024, own + number),
                not_before: NotBefore::At(Timestamp(i64::try_from(own >> 20).unwrap())),
                ..scheduled(format!("text-{number}"), strangers(2, number))
            };
            (0..600).map(texts).collect()
        }
        // Events of our VMs.
        OF_OURS => {
            (0..60).map(|number| scheduled(format!("{number}-{}", poll / 6), vec![VmName::new(VMS[0])])).collect()
        }
        // Events that are started, scheduled again, and gone.
        5 if poll.is_multiple_of(12) => Vec::new(),
        5 => {
            let status = || if poll % 12 < 6 { Status::Scheduled } else { Status::Started };
            (0..300).map(|number| announced(&format!("flaps-{number}"), status(), strangers(20, number))).collect()
        }
        // Ids in a different case, and VM names with a different prefix.
        6 => {
            let id =
                |number: u64| if poll.is_multiple_of(2) { format!("CASE-{number}") } else { format!("case-{number}") };
            let vms =
                |number: u64| vec![VmName::new(&format!("{}x{number}", if poll.is_multiple_of(2) { "_" } else { "" }))];
            (0..1_000).map(|number| scheduled(id(number), vms(number))).collect()
        }
        // Present for some polls, then over, with large lists of VMs: these events fill the history.
        7 => (0..200).map(|number| scheduled(format!("{number}-{}", poll / 6), strangers(20, own + number))).collect(),
        // Sometimes unreadable.
        _ => {
            let one = |number: u64| {
                let read = scheduled(format!("odd-{number}"), strangers(50, own + number));
                if (poll + number).is_multiple_of(3) { Announcement::unreadable(read.id, "it is odd") } else { read }
            };
            (0..300).map(one).collect()
        }
    }
}

/// The true events at this poll: one event is always present, and at times another event is announced, starts and ends.
fn truth(poll: u64) -> Vec<Announcement> {
    let ours = |id: &str, status, vm: usize| announced(id, status, vec![VmName::new(VMS[vm])]);
    let (number, at) = (poll / LIFE, poll % LIFE);
    let status = match at {
        10..50 => Some(Status::Scheduled),
        50..70 => Some(Status::Started),
        _ => None,
    };
    let passing = status.map(|status| ours(&format!("ours-{number}"), status, 1));
    [ours(HELD, Status::Scheduled, 2)].into_iter().chain(passing).collect()
}

struct Liar {
    world: World,
    seen: [(Observation, Allowance); VMS.len()],
    /// Size of the log in bytes.
    log: usize,
}

impl Liar {
    fn new() -> Self {
        let mut liar = Self { world: World::with_hooks(1), seen: Default::default(), log: 0 };
        liar.hear(0, false);
        let hold = OperatorRequest::Hold { event: EventId::new(HELD), until: Timestamp(5_400_000), no_hooks: false };
        let verdict = liar.commit(
            VMS[0],
            Command::RequestAction(RequestAction { what: hold, who: "root".into(), reason: "not now".into() }),
        );
        assert_eq!(verdict, ApplyResult::Applied);
        liar
    }

    fn commit(&mut self, by: &str, command: Command) -> ApplyResult {
        let entry = Entry { at: self.world.input.now, by: VmName::new(by), command };
        self.log += encode_entry(&entry).len();
        apply(&mut self.world.state, &entry)
    }

    /// One poll of every replica, and the reactions of the leader and of all replicas.
    fn poll(&mut self, poll: u64) {
        self.hear(poll, true);
        self.act();
    }

    fn hear(&mut self, poll: u64, with_lies: bool) {
        let now = Timestamp(i64::try_from(poll).unwrap() * 1_000);
        self.world.input.now = now;
        for (place, name) in VMS.iter().enumerate() {
            let lies = if with_lies { lies(poll, place as u64) } else { Vec::new() };
            let document = Document::new(truth(poll).into_iter().chain(lies).collect());
            let (me, state) = (VmName::new(name), &self.world.state);
            let (observation, allowance) = &mut self.seen[place];
            observation.adopt_state(state, &me);
            observation.record_poll(
                Poll { document: &document, time: PollTime::at_once(now), patience: Patience::default() },
                state,
                |_| true,
            );
            let believed = observation.document().unwrap();
            assert!(believed.bytes() <= 2 * DOCUMENT_BYTES, "{} bytes are believed", believed.bytes());
            let Some(report) = observation.report(state, &me) else { continue };
            let Command::ReportDocument(ReportDocument { document, .. }) = &report else { unreachable!() };
            let bytes = document.bytes();
            if allowance.admits(bytes, concerns_us(document, state, &me), now) {
                allowance.spend(bytes, now);
                assert_eq!(self.commit(name, report), ApplyResult::Applied);
            }
        }
    }

    fn act(&mut self) {
        for _ in 0..8 {
            let due = plan(&self.world.state, &self.world.input);
            let ended =
                VMS.map(VmName::new).iter().flat_map(|name| outcomes(&self.world.state, name)).collect::<Vec<_>>();
            if due.is_empty() && ended.is_empty() {
                break;
            }
            for command in due {
                self.commit(VMS[1], command);
            }
            for (by, command) in ended {
                let verdict = self.commit(by.as_str(), command);
                assert_ne!(verdict, ApplyResult::Rejected(Rejection::UnknownEvent));
            }
        }
    }

    fn state(&self) -> &State {
        &self.world.state
    }

    fn is_bounded(&self, poll: u64) {
        let stored = encode_state(self.state());
        let mut read = None;
        let held = measure(|| read = Some(decode_state(&stored).unwrap())).bytes_current;
        let held = u64::try_from(held).unwrap();
        assert!(held <= MOST_OF_STATE, "{} KiB of memory after {poll} polls", held >> 10);
        assert!(stored.len() <= MOST_OF_SNAPSHOT, "a snapshot of {} KiB after {poll} polls", stored.len() >> 10);
        let [at_once, each] = MOST_OF_LOG;
        assert!(self.log as u64 <= at_once + poll * each, "{} KiB in the log after {poll} polls", self.log >> 10);
        let too_large = self.state().open_events().find(|event| event.announcement.bytes() > ANNOUNCEMENT_BYTES);
        assert!(too_large.is_none(), "{too_large:?}");
    }

    fn is_kept(&self, poll: u64) {
        let held = self.state().open_event(&EventId::new(HELD)).unwrap();
        assert!(held.stage() <= Stage::Preparing && held.claims.is_empty(), "{:?} at {poll}", held.stage());
        assert_eq!(held.operator_records.len(), 1);
        // The present event, and every earlier event since the last lie about our VMs.
        let (cycle, of_ours) = (LIES * LIE_LASTS, OF_OURS * LIE_LASTS);
        let believed =
            (poll.saturating_sub(of_ours) / cycle * cycle + of_ours + LIE_LASTS) * u64::from(poll >= of_ours);
        for number in 0..=poll / LIFE {
            let at = poll - number * LIFE;
            let event = self.state().event(&EventId::new(&format!("ours-{number}")));
            let stage = event.map(Event::stage);
            let accepted = event.is_some_and(Event::is_accepted);
            match at {
                0..10 => {}
                10..40 => assert!(event.is_some(), "ours-{number} is not known at {poll}"),
                40..90 => assert!(accepted, "ours-{number} is {stage:?} at {poll}"),
                90.. if number * LIFE + 90 < believed => {}
                90.. => assert_eq!((accepted, stage), (true, Some(Stage::Closed)), "ours-{number} at {poll}"),
            }
        }
    }
}

fn lie_for(polls: u64) -> (usize, usize) {
    let mut liar = Liar::new();
    for poll in 1..=polls {
        liar.poll(poll);
        if poll.is_multiple_of(25) {
            liar.is_kept(poll);
            liar.is_bounded(poll);
        }
    }
    (encode_state(liar.state()).len(), liar.log)
}

#[test]
fn whatever_a_service_lies_costs_a_bounded_number_of_bytes_and_nothing_of_ours_is_lost() {
    lie_for(LIE_LASTS * (LIES + 1));
}

#[test]
#[ignore = "takes minutes: an hour of polls"]
fn an_hour_of_lies_costs_a_bounded_number_of_bytes_and_nothing_of_ours_is_lost() {
    let (snapshot, log) = lie_for(HOUR);
    println!("a snapshot of {} KiB, {} KiB in the log", snapshot >> 10, log >> 10);
}

#[test]
fn a_replica_that_comes_back_reports_what_there_is_room_for() {
    let mut liar = Liar::new();
    for poll in 1..=4 {
        liar.poll(poll);
    }
    // The previous run reported a document that differs from the documents of this run.
    liar.seen[0].0 = Observation::default();
    let other = 7 * LIE_LASTS;
    for poll in other..other + 40 {
        liar.poll(poll);
    }
    let reported = liar.state().replicas[&VmName::new(VMS[0])].document.as_ref().unwrap();
    assert!(reported.bytes() <= DOCUMENT_BYTES, "{} bytes", reported.bytes());
    assert!(liar.seen[0].0.left_out() > 0);
    assert!(Duration::from_secs(40) < Allowance::LONGEST);
}
