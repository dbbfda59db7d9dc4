//! The calls of hooks no longer configured. A member taken out of service by such a hook is restored by the former
//! configuration, also after a restart.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::hook_calls::{Configured, HookCalls};
use crate::hooks::command::FORMER_HOOKS;
use allclear_core::model::hook_id::HookId;
use allclear_core::model::id::WorkloadName;
use allclear_core::model::workload::Phase;

/// Access for the owner alone: hooks have secrets in their variables.
const MODE: u32 = 0o600;

/// Hooks of former configurations, possibly still needed, on the disk beside the hooks of the present configuration.
#[derive(Debug, Default)]
pub struct Former {
    /// `None`: nothing is written.
    file: Option<PathBuf>,
    known: Mutex<Configured>,
}

/// A hook on the disk.
#[derive(Serialize, Deserialize)]
struct StoredHook {
    workload: String,
    phase: String,
    key: u64,
    #[serde(flatten)]
    calls: HookCalls,
}

impl Former {
    /// Reads the hooks of previous runs from this folder, and adds the present hooks.
    ///
    /// # Errors
    /// When the file cannot be read or written. An undecodable file is an error, too: the file may contain the only way
    /// to restore a member.
    pub fn open(folder: &Path, configured: &Configured) -> io::Result<Self> {
        let file = folder.join(FORMER_HOOKS);
        let mut known = read(&file)?;
        known.retain(|hook, _| !configured.contains_key(hook));
        write(&file, configured.iter().chain(&known))?;
        Ok(Self { file: Some(file), known: Mutex::new(known) })
    }

    pub(super) fn calls(&self, workload: &WorkloadName, id: HookId) -> Option<HookCalls> {
        self.known().get(&(workload.clone(), id)).cloned()
    }

    /// Forgets hooks no longer needed, on the disk too.
    pub(super) fn keep(&self, configured: &Configured, is_needed: impl Fn(&WorkloadName, HookId) -> bool) {
        let mut known = self.known();
        let before = known.len();
        known.retain(|(workload, id), _| is_needed(workload, *id));
        if known.len() == before {
            return;
        }
        let Some(file) = &self.file else { return };
        if let Err(error) = write(file, configured.iter().chain(&*known)) {
            tracing::warn!(%error, file = %file.display(), "hooks of a former configuration not removed from the disk");
        }
    }

    fn known(&self) -> MutexGuard<'_, Configured> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn read(file: &Path) -> io::Result<Configured> {
    let text = match fs::read(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Configured::new()),
        read => read?,
    };
    let stored: Vec<StoredHook> = serde_json::from_slice(&text)?;
    let known = |StoredHook { workload, phase, key, calls }: StoredHook| {
        let phase = Phase::parse(&phase).ok_or_else(|| io::Error::other(format!("{phase:?} is not a phase")))?;
        Ok(((WorkloadName(workload), HookId { phase, key }), calls))
    };
    stored.into_iter().map(known).collect()
}

/// Replaces the file: the disk has the old or the new hooks, never a part.
fn write<'a>(file: &Path, hooks: impl Iterator<Item = (&'a (WorkloadName, HookId), &'a HookCalls)>) -> io::Result<()> {
    let hooks: BTreeMap<&(WorkloadName, HookId), &HookCalls> = hooks.collect();
    let stored = hooks.into_iter().map(|((workload, HookId { phase, key }), calls)| StoredHook {
        workload: workload.0.clone(),
        phase: phase.to_string(),
        key: *key,
        calls: calls.clone(),
    });
    let text = serde_json::to_vec(&stored.collect::<Vec<_>>())?;
    let beside = file.with_extension("new");
    let mut new = OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(&beside)?;
    new.write_all(&text)?;
    new.sync_all()?;
    fs::rename(&beside, file)?;
    file.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::hooks::HookCommand;

    fn hook(key: u64, program: &str) -> ((WorkloadName, HookId), HookCalls) {
        let id = HookId { phase: Phase::Restore, key };
        let run = HookCommand { argv: vec![program.into()], ..HookCommand::default() };
        ((WorkloadName("db".into()), id), HookCalls { run, confirm: None, undo: None })
    }

    #[test]
    fn what_an_earlier_life_had_is_known_until_nobody_needs_it() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Configured::from([hook(u64::MAX, "/old")]), Configured::from([hook(2, "/new")]));
        Former::open(folder.path(), &old).unwrap();
        Former::open(folder.path(), &new).unwrap();
        let former = Former::open(folder.path(), &new).unwrap();
        let (name, id) = old.keys().next().unwrap();
        assert_eq!(former.calls(name, *id).unwrap().run.argv, ["/old"]);
        let mode = fs::metadata(folder.path().join(FORMER_HOOKS)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, MODE);

        former.keep(&new, |_, _| false);
        assert!(former.calls(name, *id).is_none());
        assert!(!fs::read_to_string(folder.path().join(FORMER_HOOKS)).unwrap().contains("/old"));
    }

    #[test]
    fn what_cannot_be_understood_is_not_thrown_away() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join(FORMER_HOOKS), "[{\"workload\":").unwrap();
        let error = Former::open(folder.path(), &Configured::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert!(fs::read_to_string(folder.path().join(FORMER_HOOKS)).unwrap().starts_with("[{"));
    }
}
