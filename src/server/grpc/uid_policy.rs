//! Checks before each call on a socket whether the user of the calling process may call.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use nix::unistd::geteuid;
use tonic::service::Routes;
use tonic::transport::server::UdsConnectInfo;
use tonic::{Extensions, Status};

use crate::replica::metrics::{Metrics, RefusalKind};

/// Root, and the replica's own user.
pub fn trusted_users() -> Vec<u32> {
    vec![0, geteuid().as_raw()]
}

/// Root, the replica's own user, and the configured users.
#[derive(Clone, Debug)]
pub struct Users {
    own: u32,
    others: Vec<u32>,
}

impl Users {
    pub fn own_and(others: &[u32]) -> Self {
        Self { own: geteuid().as_raw(), others: others.to_vec() }
    }

    pub(super) fn may(&self, uid: u32) -> bool {
        self.is_trusted(uid) || self.others.contains(&uid)
    }

    pub(super) fn is_trusted(&self, uid: u32) -> bool {
        uid == 0 || uid == self.own
    }
}

/// The check before every service of one socket, health and reflection included.
pub struct UidPolicy {
    pub(super) users: Users,
    pub(super) metrics: Arc<Metrics>,
    /// The label of a rejected call.
    pub(super) why: RefusalKind,
}

impl UidPolicy {
    pub fn of_operators(metrics: Arc<Metrics>) -> Self {
        Self { users: Users::own_and(&[]), metrics, why: RefusalKind::Operator }
    }

    pub fn of_workloads(uids: &[u32], metrics: Arc<Metrics>) -> Self {
        Self { users: Users::own_and(uids), metrics, why: RefusalKind::Workload }
    }

    pub(super) fn before(self: Arc<Self>, routes: Routes) -> Routes {
        let judge = move |call: Request, next: Next| {
            let judged = self.judge(&call);
            async move {
                match judged {
                    Ok(()) => next.run(call).await,
                    Err(status) => status.into_http(),
                }
            }
        };
        routes.into_axum_router().layer(from_fn(judge)).into()
    }

    fn judge(&self, call: &Request) -> Result<(), Status> {
        let caller = caller(call.extensions());
        if caller.is_some_and(|(uid, _)| self.users.may(uid)) {
            return Ok(());
        }
        let who = caller.map_or_else(|| "a caller without a uid".into(), |(uid, _)| format!("uid {uid}"));
        self.metrics.refusals.note(self.why, &who, caller.and_then(|(_, pid)| pid), call.uri().path());
        Err(Status::permission_denied(if self.why == RefusalKind::Workload {
            format!(
                "{who} may not register here: add the uid to `workloads.allow_uids`, or to `allow_uids` of the group \
                 or workload, in the replica's configuration"
            )
        } else {
            format!(
                "{who} may not call this replica: call as root, or as uid {}, the user of this replica",
                self.users.own
            )
        }))
    }
}

/// The user and the process at the other end of the connection.
pub(super) fn caller(extensions: &Extensions) -> Option<(u32, Option<i32>)> {
    let peer = extensions.get::<UdsConnectInfo>()?.peer_cred?;
    Some((peer.uid(), peer.pid()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_the_own_user_and_those_of_the_configuration_may() {
        let users = Users { own: 100, others: vec![200] };
        assert_eq!([0, 100, 200, 300].map(|uid| users.may(uid)), [true, true, true, false]);
    }

    #[test]
    fn whom_the_kernel_does_not_name_is_refused() {
        let guard = UidPolicy::of_operators(Arc::new(Metrics::new().unwrap()));
        let refused = guard.judge(&Request::default()).unwrap_err();
        assert!(refused.message().starts_with("a caller without a uid may not call this replica"), "{refused}");
    }
}
