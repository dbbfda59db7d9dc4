//! Watches for the time when this replica hears no leader, and approves by the core's procedure: by itself as one of a pair, or on
//! an operator's request.

use std::time::Duration;

use super::clock;
use super::host::ReplicaHost;
use super::watchdog::Loop;
use allclear_core::isolation::watch::IsolationWatch;
use allclear_core::procedure::isolation::{AGAIN_AFTER, IsolatedHost, NotApproved, approve_isolated, isolated_view};

const TICK: Duration = Duration::from_millis(250);
/// The tick while a leader is heard: only new documents matter then.
const IDLE_TICK: Duration = Duration::from_millis(500);

pub(super) async fn run(host: ReplicaHost) {
    let mut watch = IsolationWatch::new(clock::monotonic());
    let mut not_before = watch.last_tick;
    let context = &host.context;
    let (mut status, mut polls) = (context.consensus.status(), host.observer.polls());
    let mut is_led = true;
    loop {
        let wait = context.watchdog.until_turn(if is_led { IDLE_TICK } else { TICK });
        context.watchdog.arm(Loop::Alone, wait);
        let request = tokio::select! {
            () = tokio::time::sleep(wait) => None,
            _ = polls.changed() => None,
            _ = status.wait_for(|status| !status.quorum), if is_led => None,
            request = context.alone_requests.next() => Some(request),
            () = host.stop.cancelled() => return,
        };
        let view = isolated_view(&host, &mut watch).await;
        is_led = host.has_quorum();
        let is_isolated = view.is_some();
        context.alone.send_replace(view);
        let input = is_isolated.then(|| context.planning_input());
        let is_due = input.as_ref().is_some_and(|input| host.event_to_approve(input).is_some());
        let may_try_again = clock::monotonic() >= not_before;
        // An approval runs to its end, also when the replica stops: the journal gets the outcome of what was posted.
        match (request, input) {
            (Some(request), None) if is_led => request.answer(Err(NotApproved::Led)),
            (Some(request), None) => {
                request.answer(Err(NotApproved::Failed("the end of the log cannot be read".into())));
            }
            (Some(request), Some(input)) => {
                let approved = approve_isolated(&host, input, Some(&request.request)).await;
                request.answer(approved);
            }
            (None, Some(input)) if is_due && may_try_again => {
                if let Err(why) = approve_isolated(&host, input, None).await {
                    tracing::warn!(%why, "isolated approval failed");
                }
                not_before = clock::monotonic().plus(AGAIN_AFTER);
            }
            (None, _) => continue,
        }
        watch.last_tick = clock::monotonic();
    }
}
