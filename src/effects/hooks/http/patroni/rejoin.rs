//! The return of a member. Patroni lets the member rejoin automatically; the hook waits until the member streams and
//! has received all WAL written by the leader before the hook began. The hook changes nothing, so a kill of the hook
//! has no effect.

use std::time::Duration;

use tokio::time::sleep;

use super::api::Api;
use super::view::PatroniView;
use crate::hooks::HookOutcome;
use allclear_core::model::id::VmName;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After the deadline.
const ENDED_WITHIN: Duration = Duration::from_secs(5);

pub(super) async fn await_rejoin(api: &Api<'_>) -> HookOutcome {
    let (mut told, mut target) = (None, None);
    loop {
        let waits = match look(api).await {
            Ok(view) => {
                target = target.or_else(|| view.leader.as_ref()?.position);
                view.rejoined(api.facts, api.names, target)
            }
            Err(why) => Err(why),
        };
        let Err(why) = waits else { return HookOutcome::Done };
        if api.facts.time_left().is_zero() {
            // The supervisor ends the hook at the deadline, and reports a timeout.
            sleep(ENDED_WITHIN).await;
            return HookOutcome::Failed(why);
        }
        if told.as_ref() != Some(&why) {
            api.server.say("progress", &why);
            told = Some(why);
        }
        sleep(LOOK_EVERY.min(api.facts.time_left())).await;
    }
}

/// Adds the status of the VM's own member.
async fn look(api: &Api<'_>) -> Result<PatroniView, String> {
    let mut view = api.look().await?;
    let Some(member) = view.member_on(&VmName::new(api.facts.text("vm")), api.names) else { return Ok(view) };
    if let Some(status) = api.followers_status(member).await {
        let name = member.name.clone();
        view.others.insert(name, status);
    }
    Ok(view)
}
