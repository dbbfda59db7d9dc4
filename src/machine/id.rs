//! Names of things: VMs, events, workloads, attempts. Comparing names is decided here and nowhere else.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;
use core::hash::{Hash, Hasher};

/// A text that is compared by its key and shown as it was received. Many things bear the same name, so its text is
/// shared.
#[derive(Clone)]
struct Caseless {
    key: Arc<str>,
    shown: Arc<str>,
}

impl Caseless {
    fn new(shown: &str, key: &str) -> Self {
        Self { key: key.to_ascii_lowercase().into(), shown: shown.into() }
    }
}

macro_rules! compared_by_key {
    ($name:ident) => {
        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.0.key == other.0.key
            }
        }
        impl Eq for $name {}
        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                Some(self.cmp(other))
            }
        }
        impl Ord for $name {
            fn cmp(&self, other: &Self) -> Ordering {
                self.0.key.cmp(&other.0.key)
            }
        }
        impl Hash for $name {
            fn hash<H: Hasher>(&self, hasher: &mut H) {
                self.0.key.hash(hasher);
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0.shown)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0.shown)
            }
        }
        impl $name {
            /// As it was received.
            pub fn as_str(&self) -> &str {
                &self.0.shown
            }
        }
    };
}

/// The name of a VM, and so of the replica beside it.
///
/// Old api-versions put one underscore before the name and the platform changes the case, so both are ignored when
/// names are compared (`behaviour.md` 2). Nothing else is: `vm1` is not `vm10`.
#[derive(Clone)]
pub struct VmName(Caseless);

impl VmName {
    pub fn new(name: &str) -> Self {
        Self(Caseless::new(name, name.strip_prefix('_').unwrap_or(name)))
    }
}

compared_by_key!(VmName);

/// An event of the platform: compared without case, sent back as received (`imds.md`, the document).
#[derive(Clone)]
pub struct EventId(Caseless);

impl EventId {
    pub fn new(id: &str) -> Self {
        Self(Caseless::new(id, id))
    }
}

compared_by_key!(EventId);

impl EventId {
    /// The idempotency key of one of its attempts: unique over clusters and over lost disks.
    pub fn key_of(&self, attempt: AttemptId) -> String {
        format!("{self}.{attempt}")
    }
}

/// The name of a workload, unique on its VM.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WorkloadName(pub String);

impl fmt::Display for WorkloadName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The workloads that are replicas of each other.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupName(pub String);

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One run of one hook, or one claim: unique in a cluster, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptId(pub u64);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vm_names_ignore_case_and_one_leading_underscore_only() {
        assert_eq!(VmName::new("_WestNO_0"), VmName::new("westno_0"));
        assert_ne!(VmName::new("__vm"), VmName::new("vm"));
        assert_ne!(VmName::new("vm1"), VmName::new("vm10"));
        assert_eq!(VmName::new("_vm").as_str(), "_vm");
    }

    #[test]
    fn event_ids_ignore_case_and_are_sent_back_as_received() {
        assert_eq!(EventId::new("AB-1"), EventId::new("ab-1"));
        assert_eq!(EventId::new("Ab-1").as_str(), "Ab-1");
    }
}
