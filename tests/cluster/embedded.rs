//! A database process that embeds the library and can be killed. Its failover appends a line to a file, and stops
//! before or after the append on request.

use std::env;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use allclear::workload::{Hook, Outcome, Phase, Step, Workload};
use nix::sys::signal::Signal;
use tokio::time::sleep;

use super::cluster::signal_process;

const FOLDER: &str = "ALLCLEAR_TEST_FOLDER";
const MANNER: &str = "ALLCLEAR_TEST_MANNER";
pub(crate) const WORKLOAD: &str = "orders";
/// The shortest possible lease, so that a disconnected database is missed soon.
const LEASE: Duration = Duration::from_secs(1);

/// How the database keeps track of completed steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Manner {
    /// Has a journal, and answers a confirm after a check of the effects.
    Careful,
    /// Has no journal and no confirm.
    Blind,
    /// Has no journal, and answers each confirm with `NotDone`, without a check.
    Careless,
}

/// The database's process, and the folder of the effects and of the requests to stop.
pub(crate) struct Database {
    folder: PathBuf,
    manner: Manner,
    process: Option<Child>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    BeforeTheEffect,
    AfterTheEffect,
}

impl Database {
    /// Starts a database that connects to `line` in this folder.
    pub(crate) fn started(folder: &Path, manner: Manner) -> Self {
        let mut database = Self { folder: folder.to_owned(), manner, process: None };
        database.start();
        database
    }

    pub(crate) fn start(&mut self) {
        let process = Command::new(env::current_exe().unwrap())
            .args([crate::own_test!(a_database_can_be_a_process_of_its_own), "--exact", "--nocapture"])
            .env(FOLDER, &self.folder)
            .env(MANNER, format!("{:?}", self.manner))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        assert!(self.process.replace(process).is_none(), "it runs already");
    }

    /// `kill -9`.
    pub(crate) fn kill(&mut self) {
        let mut process = self.process.take().expect("it runs");
        process.kill().unwrap();
        process.wait().unwrap();
    }

    pub(crate) fn freeze(&self) {
        self.signal(Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self) {
        self.signal(Signal::SIGCONT);
    }

    fn signal(&self, signal: Signal) {
        signal_process(self.process.as_ref().expect("it runs").id().cast_signed(), signal);
    }

    pub(crate) fn runs(&self) -> bool {
        self.process.is_some()
    }

    /// Makes the failover stop at `moment`.
    pub(crate) fn hold(&self, moment: Moment) {
        let _ = fs::remove_file(self.folder.join("held"));
        fs::write(self.folder.join("hold"), format!("{moment:?}")).unwrap();
    }

    pub(crate) fn is_held(&self) -> bool {
        self.folder.join("held").exists()
    }

    pub(crate) fn let_go(&self) {
        fs::remove_file(self.folder.join("hold")).unwrap();
    }

    /// Number of effects of an event.
    pub(crate) fn effects(&self, event: &str) -> usize {
        effects(&self.folder, &format!("{event}@"))
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
    }
}

fn effects(folder: &Path, prefix: &str) -> usize {
    let effects = fs::read_to_string(folder.join("effects")).unwrap_or_default();
    effects.lines().filter(|line| line.starts_with(prefix)).count()
}

#[tokio::test]
async fn a_database_can_be_a_process_of_its_own() {
    let (Ok(folder), Ok(manner)) = (env::var(FOLDER), env::var(MANNER)) else { return };
    // The process ends with the test.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
    let folder = PathBuf::from(folder);
    let workload = Workload::new(WORKLOAD, folder.join("line")).lease(LEASE);
    let (acts, looks) = (folder.clone(), folder.clone());
    let hook = Hook::new(Phase::Failover, move |step| fail_over(acts.clone(), step)).attempts(20);
    let workload = match manner.as_str() {
        "Careful" => {
            let look = move |step: Step| {
                let is_done = effects(&looks, &step.id) > 0;
                async move { if is_done { Outcome::Done } else { Outcome::NotDone } }
            };
            workload.journal(folder.join("journal")).hook(hook.confirm(look))
        }
        "Careless" => workload.hook(hook.confirm(|_| async { Outcome::NotDone })),
        _ => workload.hook(hook),
    };
    let _taking_part = workload.start().unwrap();
    std::future::pending::<()>().await;
}

async fn fail_over(folder: PathBuf, step: Step) -> std::io::Result<()> {
    stop_if_asked(&folder, Moment::BeforeTheEffect).await?;
    let mut file = File::options().create(true).append(true).open(folder.join("effects"))?;
    writeln!(file, "{}", step.id)?;
    file.sync_data()?;
    stop_if_asked(&folder, Moment::AfterTheEffect).await
}

async fn stop_if_asked(folder: &Path, moment: Moment) -> std::io::Result<()> {
    let is_asked = || fs::read_to_string(folder.join("hold")).is_ok_and(|asked| asked == format!("{moment:?}"));
    if is_asked() {
        fs::write(folder.join("held"), "")?;
    }
    while is_asked() {
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}
