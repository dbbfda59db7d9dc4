//! What the demo tells before and after its events.

use std::num::NonZeroU32;
use std::time::Duration;

use crate::fake_cloud::CloudScenario;
use crate::local_cluster::{LocalCluster, SampleWorkload, replica};

/// The speed at which the shortest notice becomes short enough to watch.
pub(super) fn speed(scenario: &CloudScenario, notice: Duration) -> NonZeroU32 {
    let times = scenario.shortest_notice().as_millis() / notice.as_millis().max(1);
    u32::try_from(times).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN)
}

pub(super) fn introduced(scenario: &CloudScenario, workload: &SampleWorkload, speed: NonZeroU32) -> Vec<String> {
    let each = match workload {
        SampleWorkload::Hooks(_) => "one workload each".to_owned(),
        SampleWorkload::Dials(_) => "a member of a database connected to each".to_owned(),
        SampleWorkload::Serves(server) => format!("a server of {} beside each", server.system().name),
    };
    let mut lines = vec![
        format!("{}: {}", scenario.name(), scenario.about()),
        format!("three replicas, {each}; the fake cloud's time runs {speed} times faster"),
    ];
    if let SampleWorkload::Serves(_) = workload {
        lines.push("the servers are set up, which takes some seconds: a primary on db-0, and two standbys".into());
    }
    lines
}

pub(super) fn page(stage: &LocalCluster) -> String {
    stage.replicas.first().map_or_else(String::new, |replica| format!("http://{}/", replica.status))
}

pub(super) fn kept(stage: &LocalCluster) -> String {
    let line = |replica: &replica::LocalReplica| {
        let Some(program) = std::env::args().next() else { return String::new() };
        format!("  http://{}/v1/status   {program} status --endpoint {}", replica.status, replica.socket.display())
    };
    let mut lines: Vec<String> = stage.replicas.iter().map(line).collect();
    if let Some(servers) = &stage.servers {
        lines.extend(servers.addresses().map(|(vm, at)| format!("  {} on {vm} is at {at}", servers.name())));
    }
    format!(
        "Everything keeps running until you press Ctrl-C.\n{}\n  {} controls the fake cloud",
        lines.join("\n"),
        stage.cloud.control()
    )
}
