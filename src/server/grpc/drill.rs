//! Drills at an operator's request: checked here, decided by the log.

use allclear_core::model::document;
use std::time::Duration;

use tonic::Status;

use crate::replica::clock::from_rfc3339;
use crate::replica::cluster::ClusterHandle;
use allclear_core::model::command::{ApplyResult, BeginDrill, Command, EndDrill, Rejection, bounded};
use allclear_core::model::document::{Announcement, NotBefore};
use allclear_core::model::drill::{self, Mode, PREFIX};
use allclear_core::model::id::{EventId, VmName};
use allclear_wire::pb::allclear::operator::v1 as shown;

/// The limit for the name of a VM.
const MAX_WORD_BYTES: usize = 256;
/// The limit for VMs, as in a document's event.
const MAX_RESOURCES: usize = 1_000;
/// Longer than a hundred years is no estimate.
const MAX_DURATION_S: u64 = u32::MAX as u64;

/// Starts a drill, and returns the id of the made-up event.
pub(super) async fn begin(cluster: &ClusterHandle, asked: shown::DrillRequest, who: String) -> Result<EventId, Status> {
    let mode = if asked.dry_run { Mode::DryRun } else { Mode::Rehearsal };
    let id = EventId::new(&format!("{PREFIX}{}-{}", cluster.time.now().0, cluster.node.name));
    let announcement = announcement(id.clone(), asked).map_err(Status::invalid_argument)?;
    let named: Vec<String> = announcement.resources.iter().map(ToString::to_string).collect();
    let refused = |why| match why {
        Rejection::UnknownReplica => {
            let vms = named.join(" or ");
            format!(
                "no VM of this cluster is named {vms}; if the replica of the VM has just started, try again in a \
                     moment"
            )
        }
        Rejection::NotNow => {
            "a real event or another drill is open; try again when `allclear events` lists no open event".into()
        }
        why => format!("the drill was not started: {why}; try again"),
    };
    decided(cluster, &Command::BeginDrill(BeginDrill { announcement, mode, who }), refused).await.map(|()| id)
}

pub(super) async fn end(cluster: &ClusterHandle, id: EventId) -> Result<(), Status> {
    let refused = |why| match why {
        Rejection::NotDue => format!("{id} is not a drill; Azure ends the event"),
        Rejection::Repeated => format!("{id} has ended, and the prepared workloads are being restored"),
        _ => format!("there is no open drill {id}"),
    };
    decided(cluster, &Command::EndDrill(EndDrill { event: id.clone() }), refused).await
}

async fn decided(
    cluster: &ClusterHandle,
    command: &Command,
    refused: impl Fn(Rejection) -> String,
) -> Result<(), Status> {
    match cluster.propose(command).await {
        Ok(ApplyResult::Applied) => Ok(()),
        Ok(ApplyResult::Rejected(why)) => Err(Status::failed_precondition(refused(why))),
        Err(error) => {
            Err(Status::aborted(format!("{error}; `allclear events` shows whether the request was carried out")))
        }
    }
}

/// Makes the announcement within the limits of the metadata service's documents.
fn announcement(id: EventId, asked: shown::DrillRequest) -> Result<Announcement, String> {
    let is_word = |word: &String| (1..=MAX_WORD_BYTES).contains(&word.len());
    if !(1..=MAX_RESOURCES).contains(&asked.resources.len()) || !asked.resources.iter().all(is_word) {
        return Err(format!("a drill names 1 to {MAX_RESOURCES} VMs"));
    }
    let at = |text: String| {
        let at = from_rfc3339(&text).ok_or_else(|| format!("not_before is {text:?}, not a time in RFC 3339"));
        at.map(NotBefore::At)
    };
    Ok(Announcement {
        id,
        status: document::Status::Scheduled,
        kind: drill::event_type(&asked.r#type)?,
        source: drill::source(&asked.source)?,
        resource_type: "VirtualMachine".into(),
        resources: asked.resources.iter().map(|name| VmName::new(name)).collect(),
        not_before: asked.not_before.map_or(Ok(NotBefore::Unknown), at)?,
        description: bounded(&asked.description),
        duration: asked.duration_s.filter(|seconds| *seconds <= MAX_DURATION_S).map(Duration::from_secs),
    })
}
