//! Names of VMs, events, workloads and attempts. This file defines how names are compared.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use core::cmp::Ordering;
use core::fmt;
use core::hash::Hash;
use core::hash::Hasher;

fn lowered(text: &str) -> impl Iterator<Item = u8> {
    text.bytes().map(|byte| byte.to_ascii_lowercase())
}

/// The name of a VM, and so of the replica beside the VM.
///
/// Old api-versions put one underscore before the name and the platform changes the case, so comparisons ignore both
/// (`SPEC.md` 2.4). Nothing else is ignored: `vm1` is not `vm10`. Many values have the same name, so the text is
/// shared.
#[derive(Clone)]
pub struct VmName(Arc<str>);

impl VmName {
    pub fn new(name: &str) -> Self {
        Self(name.into())
    }

    /// The name as received.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    fn key(&self) -> &str {
        self.0.strip_prefix('_').unwrap_or(&self.0)
    }
}

impl PartialEq for VmName {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.key().eq_ignore_ascii_case(other.key())
    }
}

impl Eq for VmName {}

impl PartialOrd for VmName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for VmName {
    fn cmp(&self, other: &Self) -> Ordering {
        lowered(self.key()).cmp(lowered(other.key()))
    }
}

impl Hash for VmName {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        lowered(self.key()).for_each(|byte| hasher.write_u8(byte));
        hasher.write_u8(u8::MAX);
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The id of an event of the platform. Ids are compared in lower case; the platform gets the id back as received
/// (`SPEC.md` 2, D2).
#[derive(Clone)]
pub struct EventId {
    canonical: Arc<str>,
    /// The id as received, if different.
    received: Option<Arc<str>>,
}

impl EventId {
    pub fn new(id: &str) -> Self {
        let canonical = id.to_ascii_lowercase();
        let received = (canonical != id).then(|| id.into());
        Self { canonical: canonical.into(), received }
    }

    /// In lower case.
    pub fn as_str(&self) -> &str {
        &self.canonical
    }

    /// For an approval only.
    pub fn as_received(&self) -> &str {
        self.received.as_deref().unwrap_or(&self.canonical)
    }
}

impl PartialEq for EventId {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for EventId {}

impl PartialOrd for EventId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EventId {
    fn cmp(&self, other: &Self) -> Ordering {
        self.canonical.cmp(&other.canonical)
    }
}

impl Hash for EventId {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        self.canonical.hash(hasher);
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.canonical)
    }
}

impl EventId {
    /// The idempotency key of one attempt of the event: unique over clusters and over lost disks.
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

/// The name of a group: of workloads that replicate the same data.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct GroupName(pub String);

impl fmt::Display for GroupName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The id of one run of one hook, or of one claim: unique in a cluster, never used again.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct AttemptId(pub u64);

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::hash::DefaultHasher;

    use super::*;

    #[test]
    fn vm_names_ignore_case_and_one_leading_underscore_only() {
        assert_eq!(VmName::new("_WestNO_0"), VmName::new("westno_0"));
        assert_ne!(VmName::new("__vm"), VmName::new("vm"));
        assert_ne!(VmName::new("vm1"), VmName::new("vm10"));
        assert_eq!(VmName::new("_vm").as_str(), "_vm");
    }

    #[test]
    fn names_are_ordered_and_hashed_as_if_all_of_it_were_small_letters() {
        let names = [
            "",
            "_",
            "a",
            "_A",
            "A_",
            "ab",
            "aB1",
            "AB-1",
            "b",
            "\u{e9}",
            "\u{c9}",
            &"x".repeat(40),
            &"X".repeat(40),
            &"X".repeat(41),
        ];
        let hashed = |name: &VmName| {
            let mut hasher = DefaultHasher::new();
            name.hash(&mut hasher);
            hasher.finish()
        };
        for (one, other) in names.iter().flat_map(|one| names.iter().map(move |other| (*one, *other))) {
            let [lower, lower_other] =
                [one, other].map(|name| name.strip_prefix('_').unwrap_or(name).to_ascii_lowercase());
            let (one, other) = (VmName::new(one), VmName::new(other));
            assert_eq!(one.cmp(&other), lower.cmp(&lower_other), "{one} {other}");
            assert_eq!(one == other, lower == lower_other, "{one} {other}");
            assert_eq!(hashed(&one) == hashed(&other), lower == lower_other, "{one} {other}");
        }
    }

    #[test]
    fn an_event_is_known_in_lower_case_and_sent_back_as_it_came() {
        let (id, other) = (EventId::new("Ab-1"), EventId::new("aB-1"));
        assert_eq!((&id, id.as_str(), id.as_received()), (&other, "ab-1", "Ab-1"));
        assert_eq!(other.as_received(), "aB-1");
    }
}
