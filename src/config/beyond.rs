//! What a configuration may ask for and this version does not do: the one list of it. Whoever builds one of these
//! takes its line out.
//!
//! Where the replica would do something else than was asked for, the key is refused as a mistake. Where it only does
//! less, the key is ignored, and whoever wrote it is told. A key that nobody wrote asks for nothing.

use super::Config;

/// Refused: `cluster.tls`.
pub(super) const TLS: &str = "`cluster.tls` is refused: this version cannot encrypt; remove it and set \
                              `cluster.insecure = true` on a network that nobody else can reach";

impl Config {
    /// What is written and ignored, one line for each key with what is done without it.
    pub fn beyond_this_version(&self) -> Vec<String> {
        let mut ignored = Vec::new();
        let mut tell = |written: bool, key: &str, instead: &str| {
            if written {
                ignored.push(format!("{key} is ignored by this version: {instead}"));
            }
        };
        let registration = &self.registration;
        tell(registration.socket.is_some(), "`workloads.socket`", "nobody can register over it yet");
        tell(registration.allow_uids.is_some(), "`workloads.allow_uids`", "nobody can register yet");
        ignored
    }
}
