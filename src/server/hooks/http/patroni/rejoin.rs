//! The way back of a member. Patroni lets it rejoin by itself; the hook waits until it streams, and until all that the
//! leader had written when the hook began has arrived on it. It changes nothing, so a kill of the hook leaves nothing.

use std::time::Duration;

use tokio::time::sleep;

use super::api::Api;
use super::view::PatroniView;
use crate::hooks::HookOutcome;
use allclear_core::model::id::VmName;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// After its deadline.
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
            // Whoever minds the deadline ends it, and calls that what it is.
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

/// With the word of the VM's own member on itself.
async fn look(api: &Api<'_>) -> Result<PatroniView, String> {
    let mut view = api.look().await?;
    let Some(member) = view.member_on(&VmName::new(api.facts.text("vm")), api.names) else { return Ok(view) };
    if let Some(status) = api.followers_status(member).await {
        let name = member.name.clone();
        view.others.insert(name, status);
    }
    Ok(view)
}
