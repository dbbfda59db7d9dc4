//! What a change of leaders costs: the time without one after a kill, and what a client that writes all the time
//! notices of a hand-over.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::approvals::{UNPREPARED, play, posted};
use super::figure::{Figure, ms};
use super::{READY_WITHIN, span, until_ready};
use crate::cli::say;
use crate::cli::stage::{Stage, VMS, free_addresses};
use crate::consensus::{self, Compaction, Consensus, Fold, MAX_VOTERS, Means, Options, Role, Timing, Undecodable};
use crate::replica::clock;
use crate::rpc::client::Asking;
use crate::wire::pb::allclear::operator::v1::Status;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long the client is watched, with a hand-over and without.
const WATCHED_FOR: Duration = Duration::from_secs(1);
/// About one entry of the log.
const WRITTEN: &[u8] = &[0; 200];

pub(super) async fn measure(stage: &mut Stage, times: u32) -> anyhow::Result<Vec<Figure>> {
    say(format_args!("leadership is handed over {times} times"));
    let (handed_over, untouched) = handed_over(&stage.folder, times).await?;
    say(format_args!("the leader is killed {times} times"));
    let (killed, posted) = killed(stage, times).await?;
    Ok(vec![
        Figure::of(
            "leadership handed over, as a writer sees it",
            "ms",
            handed_over,
            untouched,
            "the longest of its pauses in a second without it",
        ),
        Figure::of(
            "leader killed to the next leader",
            "ms",
            killed,
            vec![patience()],
            "its lease and the shortest election timeout, less a heartbeat",
        ),
        Figure::of("leader killed as an event is announced, to the POST", "ms", posted, vec![patience()], "the same"),
    ])
}

/// How long followers do without a leader before they elect another, in milliseconds: until its lease is over, and then
/// for their own patience.
pub(super) fn patience() -> f64 {
    let Timing { heartbeat, election_timeout: (shortest, lease), .. } = Timing::default();
    ms((lease + shortest).saturating_sub(heartbeat))
}

/// From each kill of the leader's process until another one says that it leads, and until an event is approved that is
/// announced at once.
async fn killed(stage: &mut Stage, times: u32) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let (mut spans, mut posts) = (Vec::new(), Vec::new());
    for _ in 0..times {
        until_ready(stage).await?;
        let leader = led(stage, |_| true).await?;
        let replica = stage.replicas.iter_mut().find(|replica| replica.name == leader);
        replica.context("an unknown replica leads")?.process.kill().await?;
        let (killed, killed_at) = (Instant::now(), clock::now());
        let leads = async {
            led(stage, |status| status.role == "leader").await?;
            anyhow::Ok(ms(killed.elapsed()))
        };
        let (leads, event) = tokio::try_join!(leads, play(stage, Duration::ZERO, 0, UNPREPARED))?;
        spans.push(leads);
        posts.push(span(killed_at, posted(stage, &event)?));
        stage.start(&leader)?;
    }
    until_ready(stage).await?;
    Ok((spans, posts))
}

/// Who leads as soon as a replica that runs tells so in a status of this kind.
pub(super) async fn led(stage: &Stage, counts: impl Fn(&Status) -> bool) -> anyhow::Result<String> {
    let limit = clock::steady().plus(READY_WITHIN);
    while clock::steady() < limit {
        for replica in stage.replicas.iter().filter(|replica| replica.process.runs()) {
            if let Ok(mut asking) = Asking::connect(&replica.socket).await
                && let Ok(status) = asking.status().await
                && status.quorum
                && counts(&status)
                && let Some(leader) = status.leader
            {
                return Ok(leader);
            }
        }
        sleep(LOOK_EVERY).await;
    }
    bail!("nobody leads after {} s", READY_WITHIN.as_secs())
}

/// Writes mean nothing here.
struct Nothing;

impl Fold for Nothing {
    fn stamp(&self, proposal: &[u8], _: &str) -> Result<Vec<u8>, Undecodable> {
        Ok(proposal.into())
    }

    fn apply(&mut self, _: u64, _: &[u8]) -> Result<Vec<u8>, Undecodable> {
        Ok(Vec::new())
    }

    fn published(&mut self) {}

    fn snapshot(&self) -> Vec<u8> {
        Vec::new()
    }

    fn restore(&mut self, _: &[u8]) -> Result<(), Undecodable> {
        Ok(())
    }
}

/// The longest pauses between two acknowledged writes while leadership is handed over, and while it is not. The client
/// writes through a replica that neither gives it away nor gets it.
async fn handed_over(folder: &Path, times: u32) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
    let (replicas, mut serving) = replicas(folder).await?;
    let longest = async {
        let written = Arc::new(Mutex::new(Vec::new()));
        let (mut moved, mut still) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let leader = leader(&replicas).await?;
            let mut others = (0..replicas.len()).filter(|place| *place != leader);
            let (heir, client) = others.next().zip(others.next()).context("too few replicas")?;
            for (pauses, to) in [(&mut still, None), (&mut moved, Some(VMS[heir]))] {
                let writing = tokio::spawn(write(replicas[client].clone(), written.clone()));
                sleep(WATCHED_FOR / 4).await;
                if let Some(heir) = to {
                    replicas[leader].transfer_leadership(heir).await?;
                }
                sleep(WATCHED_FOR).await;
                writing.abort();
                let written = std::mem::take(&mut *written.lock().unwrap_or_else(PoisonError::into_inner));
                let longest = written.windows(2).map(|pair| pair[1] - pair[0]).max();
                pauses.push(ms(longest.context("nothing written")?));
            }
        }
        Ok((moved, still))
    };
    let longest = longest.await;
    for replica in &replicas {
        replica.shutdown().await;
    }
    serving.shutdown().await;
    longest
}

/// Writes again as soon as the last write is acknowledged.
async fn write(client: Consensus, written: Arc<Mutex<Vec<Instant>>>) {
    while client.propose(WRITTEN).await.is_ok() {
        written.lock().unwrap_or_else(PoisonError::into_inner).push(Instant::now());
    }
}

/// Three replicas of nothing but a log.
async fn replicas(folder: &Path) -> anyhow::Result<(Vec<Consensus>, JoinSet<std::io::Result<()>>)> {
    let addresses: Vec<SocketAddr> = free_addresses(VMS.len()).context("no free port on loopback")?;
    let members: Vec<_> = VMS.iter().zip(&addresses).map(|(vm, at)| ((*vm).to_owned(), at.to_string())).collect();
    let (mut replicas, mut serving) = (Vec::new(), JoinSet::new());
    for (vm, address) in VMS.iter().zip(addresses) {
        let options = Options {
            cluster: "bench".into(),
            replica: (*vm).into(),
            replicas: members.clone(),
            data_dir: folder.join(format!("{vm}.log-only")),
            timing: Timing::default(),
            max_voters: MAX_VOTERS,
            replace_after: Duration::from_mins(10),
            compaction: Compaction::default(),
            means: Means::default(),
            tls: None,
        };
        let (consensus, routes) = Consensus::open(options, Nothing).await?;
        serving.spawn(consensus::serve(TcpListener::bind(address).await?, None, routes, CancellationToken::new()));
        replicas.push(consensus);
    }
    Ok((replicas, serving))
}

/// The place of the replica that leads and that all follow.
async fn leader(replicas: &[Consensus]) -> anyhow::Result<usize> {
    let limit = clock::steady().plus(READY_WITHIN);
    while clock::steady() < limit {
        let standings: Vec<_> = replicas.iter().map(|replica| replica.standing().borrow().clone()).collect();
        let leads = standings.iter().position(|standing| standing.role == Role::Leader && standing.quorum);
        if let Some(place) = leads
            && standings.iter().all(|standing| standing.leader.as_deref() == Some(VMS[place]))
        {
            return Ok(place);
        }
        sleep(LOOK_EVERY).await;
    }
    bail!("nobody leads after {} s", READY_WITHIN.as_secs())
}
