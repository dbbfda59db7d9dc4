//! The tasks that ask the workloads of this VM, one for each workload.

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Runs every task until `stop` is cancelled, or until the task ends.
pub(super) async fn run_each(
    stop: CancellationToken,
    polls: impl Iterator<Item = impl Future<Output = ()> + Send + 'static>,
) {
    let tasks = TaskTracker::new();
    for poll in polls {
        tasks.spawn(stop.clone().run_until_cancelled_owned(poll));
    }
    tasks.close();
    tasks.wait().await;
}
