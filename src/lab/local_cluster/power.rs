//! The platform's effects on VMs with servers: on the server, and on the replica beside the server.

use anyhow::Context as _;
use nix::sys::signal::Signal;

use super::members::MemberReport;
use super::{LocalCluster, VMS};
use allclear_cloud::PlatformEvent;
use allclear_core::model::document::EventType;
use allclear_core::model::id::VmName;
use allclear_server::replica::clock;

/// Whether a VM returns after this event, with its servers.
pub(crate) fn comes_back(kind: &EventType) -> bool {
    matches!(kind, EventType::Freeze | EventType::Reboot | EventType::Redeploy)
}

impl LocalCluster {
    /// Stops and starts the VMs with servers as the cloud's current events demand; returns the changes.
    pub(crate) async fn follow_the_cloud(&mut self) -> anyhow::Result<Vec<MemberReport>> {
        let (events, mut said) = (self.cloud.events(), Vec::new());
        if self.servers.is_none() {
            return Ok(said);
        }
        for (place, vm) in VMS.into_iter().enumerate() {
            let takes_it = |event: &&PlatformEvent| {
                event.is_impacting(clock::now()) && event.plan.resources.contains(&VmName::new(vm))
            };
            let taken = events.iter().find(takes_it).map(|event| event.plan.kind.clone());
            let what = match (taken, self.away.remove(&place)) {
                (Some(kind), None) => {
                    let what = self.take_away(place, &kind).await?;
                    self.away.insert(place, kind);
                    what
                }
                (None, Some(kind)) => self.give_back(place, &kind).await?,
                (Some(_), Some(kind)) => {
                    self.away.insert(place, kind);
                    continue;
                }
                (None, None) => continue,
            };
            said.push(MemberReport { at: clock::now(), who: "machine", vm: vm.to_owned(), what: what.to_owned() });
        }
        Ok(said)
    }

    async fn take_away(&mut self, place: usize, kind: &EventType) -> anyhow::Result<&'static str> {
        let trio = self.servers.as_ref().context("there are no servers")?.trio();
        let replica = &mut self.replicas[place].process;
        if *kind == EventType::Freeze {
            replica.signal(Signal::SIGSTOP);
            trio.freeze(place);
            return Ok("is frozen, with all processes on the VM");
        }
        trio.kill(place);
        replica.kill().await.with_context(|| format!("the replica on {} cannot be killed", VMS[place]))?;
        if *kind == EventType::Reboot {
            return Ok("goes down: the server and the replica are killed");
        }
        trio.lose_data(place)?;
        Ok("goes down: the server and the replica are killed, and the server's data is lost")
    }

    async fn give_back(&mut self, place: usize, kind: &EventType) -> anyhow::Result<&'static str> {
        let servers = self.servers.as_ref().context("there are no servers")?;
        if *kind == EventType::Freeze {
            servers.trio().thaw(place);
            self.replicas[place].process.signal(Signal::SIGCONT);
            return Ok("continues after the freeze");
        }
        servers.boot(place).await.with_context(|| format!("the server on {} cannot be started", VMS[place]))?;
        self.start(VMS[place])?;
        let is_empty = *kind == EventType::Redeploy;
        Ok(if is_empty {
            "is up again with an empty disk, and the replica starts"
        } else {
            "is up again, and the server and the replica start"
        })
    }
}
