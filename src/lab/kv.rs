//! A member of a toy database that counts: `cargo run -p allclear-client --example kv NAME SOCKET FOLDER`, once for
//! each VM. All members share the folder. The file `primary` names the primary, and holds the count of the last
//! checkpoint.

use std::{env, fs, io, io::Write as _, sync::Arc, time::Duration};

use allclear_client::{Hook, Outcome, Phase, Role, Workload, with};
use tokio::sync::Mutex;

struct Kv {
    name: String,
    folder: String,
    /// The primary's count. A standby has `None`.
    count: Mutex<Option<u64>>,
}

impl Kv {
    /// Reads whether this member is the primary, and counts on a primary. A new primary continues from the
    /// checkpoint.
    async fn look(&self) -> io::Result<Role> {
        let mut count = self.count.lock().await;
        let text = fs::read_to_string(format!("{}/primary", self.folder))?;
        let saved: Option<u64> = text.strip_prefix(&self.name).and_then(|saved| saved.trim().parse().ok());
        *count = saved.map(|saved| count.unwrap_or(saved) + 1);
        Ok(if count.is_some() { Role::Primary } else { Role::Replica })
    }

    /// Checkpoint and switch in one step: the file is always either the old file or the new file.
    async fn save(&self, primary: Option<&String>) -> io::Result<Outcome> {
        let mut count = self.count.lock().await;
        let Some(counted) = *count else { return Ok(Outcome::NotApplicable) };
        let Some(primary) = primary else { return Ok(Outcome::Blocked("there is no member to switch to".into())) };
        let next = format!("{}/{}", self.folder, self.name);
        fs::write(&next, format!("{primary} {counted}"))?;
        fs::File::open(&next)?.sync_all()?;
        fs::rename(next, format!("{}/primary", self.folder))?;
        *count = (*primary == self.name).then_some(counted);
        println!("{}: {primary} is the primary, and has {counted}", self.name);
        Ok(Outcome::Done)
    }
}

#[tokio::main]
pub(crate) async fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().collect();
    let [.., name, socket, folder] = &arguments[..] else { return Err(io::Error::other("say NAME SOCKET FOLDER")) };
    if let Ok(mut first) = fs::File::create_new(format!("{folder}/primary")) {
        write!(first, "{name} 0")?;
    }
    let kv = Arc::new(Kv { name: name.into(), folder: folder.into(), count: Mutex::default() });
    let checkpoint = Hook::new(Phase::Checkpoint, with(&kv, async |kv, _| kv.save(Some(&kv.name)).await));
    let is_over = with(&kv, async |kv, _| kv.look().await.map(|role| Outcome::done_if(role != Role::Primary)));
    let switch = with(&kv, async |kv, step| kv.save(step.prefer.first()).await);
    let failover = Hook::new(Phase::Failover, switch).confirm(is_over).timeout(Duration::from_secs(5));
    let back = with(&kv, async |kv, _| kv.look().await.map(|role| println!("{}: is back as {role:?}", kv.name)));
    let workload = Workload::new("kv", socket).group("kv").journal(format!("{folder}/{name}.journal"));
    let workload = workload.hooks([checkpoint, failover, Hook::new(Phase::Restore, back)]).start()?;
    loop {
        workload.set_role(kv.look().await?);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
