//! The cost of an event without and with allclear, as in the table of `deploy/hooks/README.md`:
//! `ALLCLEAR_RUNS=5 cargo test --profile dist --locked --test processes databases::costs:: -- --ignored --nocapture`.
//! `ALLCLEAR_SYSTEM=PostgreSQL` measures one system alone, and `ALLCLEAR_EVENT=Freeze` one kind of event;
//! `ALLCLEAR_COMPARED=no` leaves out the cost without allclear.

use std::time::Duration;

use super::stage::{Cost, Kind, Stage};
use super::trio::{System, VMS, is_installed};
use super::writers::Writers;

/// The time for which a VM is away.
const AWAY: Duration = Duration::from_secs(8);
/// The time until a person has noticed the loss of a primary, and promotes a member where no system does.
const NOTICED_AFTER: Duration = Duration::from_secs(3);

/// The members whose VMs an event takes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    Primary,
    Replica,
    /// The primary's VM and one more, in one event.
    Two,
}

impl Whom {
    fn places(self, primary: usize) -> Vec<usize> {
        let next = (primary + 1) % VMS.len();
        match self {
            Self::Primary => vec![primary],
            Self::Replica => vec![next],
            Self::Two => vec![primary, next],
        }
    }

    fn told(self) -> &'static str {
        match self {
            Self::Primary => "the primary's VM",
            Self::Replica => "a replica's VM",
            Self::Two => "two of three VMs, the primary's among them",
        }
    }
}

/// The cost of several runs.
struct Costs {
    gap: Duration,
    lost: usize,
    errors: usize,
}

impl Costs {
    fn of(mut costs: Vec<Cost>) -> Self {
        costs.sort_by_key(|cost| cost.gap);
        let sum = |of: fn(&Cost) -> usize| costs.iter().map(of).sum();
        Self { gap: costs[costs.len() / 2].gap, lost: sum(|cost| cost.lost), errors: sum(|cost| cost.errors) }
    }

    fn cells(&self) -> String {
        format!("{} ms | {}", self.gap.as_millis(), self.lost)
    }
}

/// The VMs are taken without a request for approval.
async fn uncoordinated<S: System>(kind: Kind, whom: Whom) -> Cost {
    let mut stage = Stage::<S>::bare().await;
    let writers = Writers::start::<S>(&stage.trio);
    let primary = stage.primary();
    if kind == Kind::Redeploy && !S::FAILS_OVER {
        stage.take_away(kind, primary);
        tokio::time::sleep(NOTICED_AFTER).await;
        let others: Vec<_> = (0..VMS.len()).filter(|place| *place != primary).collect();
        S::promote(&stage.trio, &others);
    } else {
        stage.take(kind, &whom.places(primary), AWAY).await;
        if S::COMES_BACK_CLOSED && kind == Kind::Reboot {
            S::promote(&stage.trio, &[primary]);
        }
    }
    stage.what_is_left(writers)
}

async fn coordinated<S: System>(kind: Kind, whom: Whom) -> Cost {
    let mut stage = Stage::<S>::with_allclear().await;
    let writers = Writers::start::<S>(&stage.trio);
    let places = whom.places(stage.primary());
    stage.event(kind, &places, AWAY).await;
    stage.all_is_there(writers)
}

/// Measures one row; with `is_to_be_compared` the uncoordinated event is measured as well, run by run in turns.
async fn row<S: System>(kind: Kind, whom: Whom, is_to_be_compared: bool) {
    let is_compared = is_to_be_compared && std::env::var_os("ALLCLEAR_COMPARED").is_none_or(|wish| wish != "no");
    let is_other = |name: &str, own: &str| std::env::var(name).is_ok_and(|wanted| wanted != own);
    if is_other("ALLCLEAR_SYSTEM", S::NAME) || is_other("ALLCLEAR_EVENT", &format!("{kind:?}")) {
        return;
    }
    if !is_installed::<S>() {
        return;
    }
    let runs = std::env::var("ALLCLEAR_RUNS").map_or(5, |runs| runs.parse().expect("ALLCLEAR_RUNS is a number"));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for _ in 0..runs {
        if is_compared {
            without.push(uncoordinated::<S>(kind, whom).await);
        }
        with.push(coordinated::<S>(kind, whom).await);
    }
    let nothing = "- | -".to_owned();
    let without = if is_compared { Costs::of(without).cells() } else { nothing.clone() };
    let (alone, itself) = if S::FAILS_OVER { (nothing, without) } else { (without, nothing) };
    let with = Costs::of(with);
    println!("| {} | {kind:?} | {} | {alone} | {itself} | {} | {} |", S::NAME, whom.told(), with.cells(), with.errors);
}

/// The rows of a system with a primary; two VMs at once as far as the system's majority allows.
async fn rows<S: System>(can_lose_two: bool) {
    for kind in [Kind::Freeze, Kind::Reboot, Kind::Redeploy] {
        row::<S>(kind, Whom::Primary, true).await;
    }
    if can_lose_two {
        row::<S>(Kind::Reboot, Whom::Two, false).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "measures for two hours"]
async fn the_table_of_what_an_event_costs() {
    println!(
        "| system | event | of | without coordination | lost | with its own failover | lost | with allclear | lost \
         | errors of clients |\n|---|---|---|---|---|---|---|---|---|---|"
    );
    rows::<super::postgresql::Postgresql>(true).await;
    row::<super::postgresql::Synchronous>(Kind::Freeze, Whom::Replica, true).await;
    row::<super::postgresql::Synchronous>(Kind::Reboot, Whom::Primary, false).await;
    row::<super::postgresql::Pooled>(Kind::Reboot, Whom::Primary, false).await;
    row::<super::postgresql::Pooled>(Kind::Redeploy, Whom::Primary, false).await;
    rows::<super::redis::Redis>(true).await;
    rows::<super::redis::Sentinel>(true).await;
    rows::<super::mariadb::MariaDb>(true).await;
    rows::<super::etcd::Etcd>(false).await;
    rows::<super::patroni::Patroni>(true).await;
}
