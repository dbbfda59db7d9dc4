//! What an event costs without and with allclear, as the table of `deploy/hooks/README.md`:
//! `ALLCLEAR_RUNS=5 cargo test --release --locked --test databases costs:: -- --ignored --nocapture`.
//! `ALLCLEAR_SYSTEM=PostgreSQL` measures one alone.

use std::time::Duration;

use super::stage::{Cost, Kind, Stage};
use super::trio::{System, VMS, is_installed};
use super::writers::Writers;

/// So long a VM is away.
const AWAY: Duration = Duration::from_secs(8);
/// Until somebody has noticed that a primary does not come back, and makes another where no system does.
const NOTICED_AFTER: Duration = Duration::from_secs(3);

/// Of several runs.
struct Costs {
    gap: Duration,
    lost: usize,
}

impl Costs {
    fn of(mut costs: Vec<Cost>) -> Self {
        costs.sort_by_key(|cost| cost.gap);
        Self { gap: costs[costs.len() / 2].gap, lost: costs.iter().map(|cost| cost.lost).sum() }
    }

    fn cells(&self) -> String {
        format!("{} ms | {}", self.gap.as_millis(), self.lost)
    }
}

/// The primary's VM is taken, and nobody was asked.
async fn uncoordinated<S: System>(kind: Kind) -> Cost {
    let mut stage = Stage::<S>::bare().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    if kind == Kind::Redeploy && !S::FAILS_OVER {
        stage.take_away(kind, primary);
        tokio::time::sleep(NOTICED_AFTER).await;
        let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
        S::promote(&stage.trio, &others);
    } else {
        stage.take(kind, &[primary], AWAY).await;
        if S::COMES_BACK_CLOSED && kind == Kind::Reboot {
            S::promote(&stage.trio, &[primary]);
        }
    }
    stage.what_is_left(writers)
}

async fn coordinated<S: System>(kind: Kind) -> Cost {
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    stage.event(kind, &[primary], AWAY).await;
    stage.all_is_there(writers)
}

async fn rows<S: System>(runs: usize) {
    let wanted = std::env::var("ALLCLEAR_SYSTEM").unwrap_or_else(|_| S::NAME.into());
    if wanted != S::NAME || !is_installed::<S>() {
        return;
    }
    for kind in [Kind::Freeze, Kind::Reboot, Kind::Redeploy] {
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for _ in 0..runs {
            without.push(uncoordinated::<S>(kind).await);
            with.push(coordinated::<S>(kind).await);
        }
        let (without, with) = (Costs::of(without).cells(), Costs::of(with).cells());
        let nothing = "- | -";
        let (alone, itself) = if S::FAILS_OVER { (nothing, &*without) } else { (&*without, nothing) };
        println!("| {} | {kind:?} | {alone} | {itself} | {with} |", S::NAME);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for some minutes"]
async fn the_table_of_what_an_event_costs() {
    let runs = std::env::var("ALLCLEAR_RUNS").map_or(5, |runs| runs.parse().expect("ALLCLEAR_RUNS is a number"));
    println!(
        "| system | event | without coordination | lost | with its own failover | lost | with allclear | lost |\n\
         |---|---|---|---|---|---|---|---|"
    );
    rows::<super::patroni::Patroni>(runs).await;
    rows::<super::postgresql::Postgresql>(runs).await;
    rows::<super::redis::Redis>(runs).await;
    rows::<super::redis::Sentinel>(runs).await;
    rows::<super::mariadb::MariaDb>(runs).await;
    rows::<super::etcd::Etcd>(runs).await;
}
