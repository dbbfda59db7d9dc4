//! Many attackers at once, on threads of their own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::{Instant, sleep};

use super::attacks::{Attack, Target};
use super::frames::PREFACE;

/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(1);
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Number of attackers of each kind, on each listener that the kind is for.
pub(crate) const SILENT: usize = 2_000;
const DRIPPING: usize = 50;
const HUGE: usize = 10;
const CROWDED: usize = 100;
const UNREAD: usize = 40;
const BURSTS: usize = 2;
const ASKING: usize = 16;

const STATUS: &str = "/allclear.operator.v1.Operator/GetStatus";
const WATCH: &str = "/allclear.operator.v1.Operator/Watch";
const POLL: &str = "/allclear.workload.v1.Workloads/Poll";
const WATCH_EVENTS: &str = "/allclear.workload.v1.Workloads/WatchEvents";
const SESSION: &str = "/allclear.workload.v1.Workloads/Session";

type Begun = BTreeMap<(Target, Attack), Arc<AtomicU64>>;

/// Continues until dropped.
pub(crate) struct Flood {
    begun: Begun,
    runtime: Option<Runtime>,
}

impl Flood {
    pub(crate) fn of(attacks: Vec<(Target, Attack, usize)>) -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let mut flood = Self { begun: Begun::new(), runtime: Some(runtime) };
        flood.swell(attacks);
        flood
    }

    /// Starts more attacks beside the running attacks.
    pub(crate) fn swell(&mut self, attacks: Vec<(Target, Attack, usize)>) {
        let Some(runtime) = &self.runtime else { return };
        for (target, attack, times) in attacks {
            let count = self.begun.entry((target.clone(), attack)).or_default();
            for number in 0..times {
                runtime.spawn(attack.go_on(target.clone(), number, count.clone()));
            }
        }
    }

    /// Waits until every attack has been tried.
    pub(crate) async fn rises(&self) {
        let began = Instant::now();
        for (attack, begun) in &self.begun {
            while begun.load(Ordering::Relaxed) == 0 {
                assert!(began.elapsed() < LIMIT, "waited in vain: the attack {attack:?}");
                sleep(LOOK_AGAIN).await;
            }
        }
    }

    pub(crate) fn told(&self) -> String {
        let line = |((target, attack), begun): (&(Target, Attack), &Arc<AtomicU64>)| {
            format!("{} times {attack:?} at {target:?}\n", begun.load(Ordering::Relaxed))
        };
        self.begun.iter().map(line).collect()
    }
}

impl Drop for Flood {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_timeout(Duration::ZERO);
        }
    }
}

/// Attacks on the socket for operators.
pub(crate) fn of_operators(target: &Target) -> Vec<(Target, Attack, usize)> {
    let mut attacks = of_http2(target, STATUS, WATCH);
    attacks
        .extend([(target.clone(), Attack::OpenCalls(WATCH), CROWDED), (target.clone(), Attack::Asks(STATUS), ASKING)]);
    attacks
}

/// Attacks on the socket for workloads.
pub(crate) fn of_workloads(target: &Target) -> Vec<(Target, Attack, usize)> {
    let mut attacks = of_http2(target, POLL, WATCH_EVENTS);
    attacks
        .extend([(target.clone(), Attack::OpenCalls(SESSION), CROWDED), (target.clone(), Attack::Asks(POLL), ASKING)]);
    attacks
}

/// Attacks of accepted workloads; beside the other attacks of the same user hardly any workload is accepted.
pub(crate) fn of_sessions(target: &Target) -> Vec<(Target, Attack, usize)> {
    [Attack::Registers, Attack::Reports].map(|attack| (target.clone(), attack, ASKING)).into()
}

fn of_http2(target: &Target, asked: &'static str, watched: &'static str) -> Vec<(Target, Attack, usize)> {
    let attacks = [
        (Attack::Silence, SILENT),
        (Attack::Drip(PREFACE), DRIPPING),
        (Attack::Gigantic(asked), HUGE),
        (Attack::GiantFrame, HUGE),
        (Attack::OpenCalls(asked), CROWDED),
        (Attack::NeverReads(asked), UNREAD),
        (Attack::NeverReads(watched), UNREAD),
        (Attack::Resets(asked), BURSTS),
        (Attack::Pings, BURSTS),
        (Attack::Settings, BURSTS),
    ];
    attacks.map(|(attack, times)| (target.clone(), attack, times)).into()
}

/// Attacks on the status port.
pub(crate) fn of_status(target: &Target) -> Vec<(Target, Attack, usize)> {
    let attacks = [
        (Attack::Silence, SILENT),
        (Attack::Drip(b"GET /v1/status HTTP/1.1\r\nx: "), DRIPPING),
        (Attack::Endless(b"GET /v1/status HTTP/1.1\r\nhost: localhost\r\nx: "), HUGE),
        (Attack::Endless(b"POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1073741824\r\n\r\n"), HUGE),
        (Attack::NeverReadsHttp("/v1/watch"), UNREAD),
        (Attack::NeverReadsHttp("/v1/status"), UNREAD),
        (Attack::AsksHttp("/v1/status"), ASKING),
        (Attack::AsksHttp("/metrics"), ASKING),
        (Attack::AsksHttp("/livez"), ASKING),
    ];
    attacks.map(|(attack, times)| (target.clone(), attack, times)).into()
}

/// Attacks on a port between replicas with certificates.
pub(crate) fn of_tls(target: &Target) -> Vec<(Target, Attack, usize)> {
    let attacks = [
        (Attack::Silence, SILENT),
        // The beginning of a record that announces the greatest possible length.
        (Attack::Drip(b"\x16\x03\x01\x40\x00\x01"), DRIPPING),
        (Attack::Endless(b"\x16\x03\x01\x40\x00\x01\x00\x3f\xfc\x03\x03"), HUGE),
        (Attack::Endless(PREFACE), HUGE),
    ];
    attacks.map(|(attack, times)| (target.clone(), attack, times)).into()
}

/// Attacks on a port between replicas without certificates.
pub(crate) fn of_plain_text(target: &Target) -> Vec<(Target, Attack, usize)> {
    let greet = "/allclear.cluster.v1.Consensus/Greet";
    let attacks = [
        (Attack::Silence, SILENT),
        (Attack::Drip(PREFACE), DRIPPING),
        (Attack::Gigantic(greet), HUGE),
        (Attack::GiantFrame, HUGE),
        (Attack::OpenCalls(greet), CROWDED),
    ];
    attacks.map(|(attack, times)| (target.clone(), attack, times)).into()
}
