//! The refusals of registrations: their words, and the refusals that the status shows.

use tonic::{Code, Status};

use super::{Admitted, WorkloadRpc, hello};
use crate::hooks::session::RegistrationError;
use crate::replica::metrics::RefusalKind;
use allclear_core::model::id::WorkloadName;
use allclear_core::ownership;
use allclear_wire::pb::allclear::workload::v1 as pb;

impl WorkloadRpc {
    /// As `register`, and keeps a refusal for the status of this replica.
    pub(super) async fn welcome(&self, hello: pb::Hello, uid: u32, polls: bool) -> Result<Admitted, Status> {
        let name = hello::is_name(&hello.workload).then(|| WorkloadName(hello.workload.clone()));
        let admitted = self.register(hello, uid, polls).await;
        let refused = &self.metrics.refused_registrations;
        match (&admitted, name) {
            (Ok(_), Some(name)) => refused.end(&name),
            (Err(why), Some(name)) if is_refusal(why.code()) => refused.note(&name, why.message()),
            _ => {}
        }
        admitted
    }

    pub(super) fn denied(&self, uid: u32, name: &WorkloadName, why: &ownership::OwnershipError) -> Status {
        use ownership::OwnershipError::{Changed, Lacks, LeavesGroup, Needed, OwesRestore, UndefinedGroup};
        match why {
            Needed { .. } | Changed { .. } | Lacks { .. } | OwesRestore { .. } => {
                return Status::failed_precondition(why.to_string());
            }
            UndefinedGroup { .. } | LeavesGroup { .. } => return Status::invalid_argument(why.to_string()),
            _ => {}
        }
        self.metrics.refusals.note(RefusalKind::Session, &format!("uid {uid}"), None, &name.0);
        Status::permission_denied(format!("{why} (you are uid {uid})"))
    }
}

/// Whether the workload or the configuration has to change, or another session to end.
fn is_refusal(code: Code) -> bool {
    matches!(code, Code::InvalidArgument | Code::FailedPrecondition | Code::PermissionDenied | Code::AlreadyExists)
}

pub(super) fn refused(refusal: &RegistrationError) -> Status {
    match refusal {
        RegistrationError::Taken(_) => Status::already_exists(refusal.to_string()),
        RegistrationError::Full => Status::resource_exhausted(refusal.to_string()),
    }
}
