//! A member of a toy database that takes part: `cargo run --example kv NAME SOCKET FOLDER`, once for each VM.
//! A folder that all members share is their replication: `primary` names who may write, `data` is its last checkpoint.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::future::{Ready, ready};
use std::io::{self, Error, ErrorKind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use allclear::workload::{Hook, Outcome, Phase, Role, Step, Workload};

struct Kv {
    name: String,
    folder: PathBuf,
    /// Whoever has the lock is alone in writing and switching.
    store: Mutex<Store>,
}

#[derive(Default)]
struct Store {
    role: Role,
    data: BTreeMap<String, u64>,
}

impl Kv {
    fn store(&self) -> MutexGuard<'_, Store> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_primary(&self) -> io::Result<bool> {
        Ok(fs::read_to_string(self.folder.join("primary"))? == self.name)
    }

    /// The file is the old one or the new one, whatever happens.
    fn put(&self, file: &str, text: &str) -> io::Result<()> {
        let next = self.folder.join(format!("{file}.{}", self.name));
        fs::write(&next, text)?;
        File::open(&next)?.sync_all()?;
        fs::rename(next, self.folder.join(file))
    }

    /// A primary writes something. A replica, and who has just become the primary, reads the last checkpoint.
    fn go_on(&self) -> io::Result<Role> {
        let mut store = self.store();
        let role = if self.is_primary()? { Role::Primary } else { Role::Replica };
        if (store.role, role) != (Role::Primary, Role::Primary) {
            store.data = serde_json::from_slice(&fs::read(self.folder.join("data"))?)?;
        }
        store.role = role;
        if role == Role::Primary {
            *store.data.entry("writes".into()).or_default() += 1;
        }
        Ok(role)
    }

    fn checkpoint(&self, _: &Step) -> io::Result<Outcome> {
        let store = self.store();
        if store.role != Role::Primary {
            return Ok(Outcome::NotApplicable);
        }
        println!("{}: writes {:?} to disk", self.name, store.data);
        self.put("data", &serde_json::to_string(&store.data)?)?;
        Ok(Outcome::Done)
    }

    fn fail_over(&self, step: &Step) -> io::Result<Outcome> {
        let mut store = self.store();
        if store.role != Role::Primary {
            return Ok(Outcome::NotApplicable);
        }
        let Some(next) = step.prefer.first() else {
            return Ok(Outcome::Blocked("there is no member to switch to".into()));
        };
        self.put("data", &serde_json::to_string(&store.data)?)?;
        self.put("primary", next)?;
        store.role = Role::Replica;
        println!("{}: {next} is the primary, and has {:?}", self.name, store.data);
        Ok(Outcome::Done)
    }

    fn is_over(&self, _: &Step) -> io::Result<Outcome> {
        Ok(if self.is_primary()? { Outcome::NotDone } else { Outcome::Done })
    }

    fn rejoin(&self, _: &Step) -> io::Result<Outcome> {
        println!("{}: is back as {:?}", self.name, self.go_on()?);
        Ok(Outcome::Done)
    }
}

type Act = fn(&Kv, &Step) -> io::Result<Outcome>;

fn with(kv: &Arc<Kv>, act: Act) -> impl Fn(Step) -> Ready<io::Result<Outcome>> + use<> {
    let kv = kv.clone();
    move |step| ready(act(&kv, &step))
}

pub(crate) async fn take_part(name: &str, socket: &str, folder: &str) -> io::Result<()> {
    let kv = Arc::new(Kv { name: name.into(), folder: folder.into(), store: Mutex::default() });
    if kv.is_primary().is_err_and(|error| error.kind() == ErrorKind::NotFound) {
        kv.put("data", "{}")?;
        kv.put("primary", name)?;
    }
    let workload = Workload::new("kv", socket)
        .group("kv")
        .journal(kv.folder.join(format!("{name}.journal")))
        .hook(Hook::new(Phase::Checkpoint, with(&kv, Kv::checkpoint)))
        .hook(
            Hook::new(Phase::Failover, with(&kv, Kv::fail_over))
                .confirm(with(&kv, Kv::is_over))
                .timeout(Duration::from_secs(5)),
        )
        .hook(Hook::new(Phase::Restore, with(&kv, Kv::rejoin)))
        .start()
        .map_err(Error::other)?;
    loop {
        workload.set_role(kv.go_on()?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::main]
async fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, socket, folder] = &arguments[..] else { return Err(Error::other("say NAME SOCKET FOLDER")) };
    take_part(name, socket, folder).await
}
