//! What the platform does to a VM: to its server, and to the replica beside it.

use anyhow::Context as _;
use nix::sys::signal::Signal;

use super::servers::Servers;
use super::{Stage, VMS};
use crate::machine::document::Kind;

/// Whether a VM comes back from this, so that its servers can be shown again.
pub(in crate::cli) fn comes_back(kind: &Kind) -> bool {
    matches!(kind, Kind::Freeze | Kind::Reboot | Kind::Redeploy)
}

impl Stage {
    /// Takes a VM away from servers that run on it; tells what it did.
    pub(in crate::cli) async fn take_away(&mut self, place: usize, kind: &Kind) -> anyhow::Result<&'static str> {
        let Some(trio) = self.servers.as_ref().map(Servers::trio) else { return Ok("nothing runs on it") };
        let replica = &mut self.replicas[place].process;
        if *kind == Kind::Freeze {
            replica.signal(Signal::SIGSTOP);
            trio.freeze(place);
            return Ok("stands still, and all that runs on it");
        }
        trio.kill(place);
        replica.kill().await.with_context(|| format!("the replica on {} cannot be killed", VMS[place]))?;
        if *kind == Kind::Reboot {
            return Ok("goes down: its server and its replica are killed");
        }
        trio.lose_data(place)?;
        Ok("goes down: its server and its replica are killed, and the server's data is lost")
    }

    /// Gives it back, and starts what starts with it; tells what it did.
    pub(in crate::cli) async fn give_back(&mut self, place: usize, kind: &Kind) -> anyhow::Result<&'static str> {
        let Some(servers) = &self.servers else { return Ok("is back") };
        if *kind == Kind::Freeze {
            servers.trio().thaw(place);
            self.replicas[place].process.signal(Signal::SIGCONT);
            return Ok("goes on where it stood still");
        }
        servers.boot(place).await.with_context(|| format!("the server on {} cannot be started", VMS[place]))?;
        self.start(VMS[place])?;
        let is_empty = *kind == Kind::Redeploy;
        Ok(if is_empty {
            "is up again with an empty disk, and its replica starts"
        } else {
            "is up again, and starts both"
        })
    }
}
