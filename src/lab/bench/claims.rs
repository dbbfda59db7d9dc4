//! The cost of the loss of the leader for a pending approval: the approver is another replica, and confirms the claim
//! with the next leader.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::time::sleep;

use super::approvals::{UNPREPARED, announce, posted, until_closed};
use super::figure::Figure;
use super::leaders::patience;
use super::{EVENT_WITHIN, led, span, until_ready};
use crate::local_cluster::LocalCluster;
use allclear_core::model::id::EventId;
use allclear_server::exit::say;
use allclear_server::grpc::client::OperatorConnection;
use allclear_server::replica::clock;

const LOOK_EVERY: Duration = Duration::from_millis(5);
/// The approver's fresh document comes so late, so that the leader is killed before the approver needs a leader.
const LATE: Duration = Duration::from_millis(300);

pub(super) async fn measure(stage: &mut LocalCluster, times: u32) -> anyhow::Result<Vec<Figure>> {
    say(format_args!("the leader is killed {times} times while another replica has to approve"));
    let mut posts = Vec::new();
    for _ in 0..times {
        posts.push(killed(stage).await?);
    }
    until_ready(stage).await?;
    Ok(vec![Figure::of(
        "leader killed in mid-claim, to another's POST",
        "ms",
        posts,
        vec![patience()],
        "the lease and the shortest election timeout, less a heartbeat",
    )])
}

/// The time from the kill to the POST of an event that one follower sees, and that affects the other follower.
async fn killed(stage: &mut LocalCluster) -> anyhow::Result<f64> {
    until_ready(stage).await?;
    let leader = led(stage, |_| true).await?;
    let place = stage.replicas.iter().position(|replica| replica.name == leader).context("an unknown replica leads")?;
    let n = stage.replicas.len();
    let (approver, stopped) = ((place + 1) % n, (place + 2) % n);
    let names: Vec<String> = stage.replicas.iter().map(|replica| replica.name.clone()).collect();
    stage.cloud.slow_down(&names[approver], LATE).context("the fake cloud has no such VM")?;
    let what = format!("{UNPREPARED}\nseen_by = {approver}");
    let id = announce(stage, Duration::ZERO, stopped, &what)?;
    until_claimed(&stage.replicas[place].socket, &id).await?;
    let killed_at = clock::now();
    stage.replicas[place].process.kill().await?;
    until_closed(stage, &id).await?;
    stage.cloud.slow_down(&names[approver], Duration::ZERO).context("the fake cloud has no such VM")?;
    stage.start(&leader)?;
    Ok(span(killed_at, posted(stage, &id)?))
}

async fn until_claimed(leader: &Path, id: &EventId) -> anyhow::Result<()> {
    let mut asking = OperatorConnection::connect(leader).await?;
    let limit = clock::monotonic().plus(EVENT_WITHIN);
    loop {
        match asking.event(id.as_str()).await.map(|event| event.stage).as_deref() {
            Ok("claimed") => return Ok(()),
            Err(_) | Ok("announced" | "preparing") => {}
            Ok(stage) => bail!("event {id} was {stage} before the claim was observed"),
        }
        if clock::monotonic() > limit {
            bail!("event {id} is not claimed after {} s", EVENT_WITHIN.as_secs());
        }
        sleep(LOOK_EVERY).await;
    }
}
