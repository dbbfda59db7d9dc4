//! The cost of the loss of a leader: the time without a leader, and the wait of an event that is announced at the
//! time of the loss.

use std::time::{Duration, Instant};

use anyhow::Context as _;

use super::approvals::{UNPREPARED, play, posted};
use super::figure::{Figure, ms};
use super::{led, span, until_ready};
use crate::local_cluster::LocalCluster;
use allclear_server::consensus::RaftTiming;
use allclear_server::exit::say;
use allclear_server::replica::clock;

pub(super) async fn measure(stage: &mut LocalCluster, times: u32) -> anyhow::Result<Vec<Figure>> {
    say(format_args!("the leader is killed {times} times"));
    let (killed, posted) = killed(stage, times).await?;
    Ok(vec![
        Figure::of(
            "leader killed to the next leader",
            "ms",
            killed,
            vec![patience()],
            "the lease and the shortest election timeout, less a heartbeat",
        ),
        Figure::of("leader killed as an event is announced, to the POST", "ms", posted, vec![patience()], "as above"),
    ])
}

/// Time in milliseconds until followers without a leader elect another leader: the end of the leader's lease, and
/// then the election timeout.
pub(super) fn patience() -> f64 {
    let RaftTiming { heartbeat, election_timeout: (shortest, lease), .. } = RaftTiming::default();
    ms((lease + shortest).saturating_sub(heartbeat))
}

/// Time from each kill of the leader's process until another replica reports to be the leader, and until the approval
/// of an event that is announced at once.
async fn killed(stage: &mut LocalCluster, times: u32) -> anyhow::Result<(Vec<f64>, Vec<f64>)> {
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
