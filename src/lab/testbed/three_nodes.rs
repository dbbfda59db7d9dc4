//! Three VMs, each with a folder, addresses and processes.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail, ensure};
use nix::sys::signal::Signal;
use nix::unistd::User;

use super::Settings;
use super::{hooks, processes, programs};

pub const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// Number of addresses for three VMs and one VM elsewhere.
pub const ADDRESSES: usize = 4 * EACH;
/// Addresses per VM: for the server, and for other processes of the system.
const EACH: usize = 3;

/// Timeout far beyond the duration of any step on a loaded machine.
const LIMIT: Duration = Duration::from_mins(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Number of log lines of a server shown after a failure.
const TAIL: usize = 30;

/// The name, folder and addresses of a VM.
pub struct DatabaseVm {
    pub name: &'static str,
    /// The VM's folder. The server's data is in `data` below.
    pub folder: PathBuf,
    /// Addresses of the server and of the system's other processes; HOST:PORT.
    pub addresses: Vec<String>,
}

impl DatabaseVm {
    fn make(name: &'static str, folder: PathBuf, addresses: &[String], user: Option<&User>) -> anyhow::Result<Self> {
        let vm = Self { name, folder, addresses: addresses.to_vec() };
        fs::create_dir(&vm.folder)?;
        hooks::install(&vm.folder)?;
        File::create(vm.log())?;
        for path in [&vm.folder, &vm.log()] {
            own(path, user)?;
        }
        Ok(vm)
    }

    pub fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// The log of the VM's server, whichever process started the server.
    pub fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    /// The last lines of the server's log.
    pub fn tail(&self) -> String {
        let log = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&log);
        let lines: Vec<&str> = text.lines().collect();
        format!("-- the end of {}\n{}", self.log().display(), lines[lines.len().saturating_sub(TAIL)..].join("\n"))
    }

    pub fn host(&self) -> &str {
        self.addresses[0].rsplit_once(':').unwrap_or_default().0
    }

    /// The server's port.
    pub fn port(&self) -> &str {
        self.addresses[0].rsplit_once(':').unwrap_or_default().1
    }
}

/// On drop, all processes on the VMs end, and the folder is removed.
pub struct ThreeNodeBed {
    pub vms: Vec<DatabaseVm>,
    /// A VM outside of the cluster, which no event takes.
    pub elsewhere: DatabaseVm,
    pub user: Option<User>,
    folder: PathBuf,
    is_over: AtomicBool,
}

impl ThreeNodeBed {
    /// The tables of this name for the replica on a VM.
    pub fn tables(&self, place: usize, name: &str, settings: Settings) -> anyhow::Result<String> {
        hooks::tables(&self.vms[place].folder, self.user.as_ref().map(|user| user.name.as_str()), name, settings)
    }

    /// Makes three VMs with only the hooks installed, in a new folder. The servers run as `user` where this process
    /// is root.
    pub fn make(folder: PathBuf, user: &str, addresses: &[String]) -> anyhow::Result<Self> {
        ensure!(addresses.len() == ADDRESSES, "three VMs take {ADDRESSES} addresses, not {}", addresses.len());
        let user = processes::ordinary_user(user)?;
        let is_open =
            fs::create_dir(&folder).and_then(|()| fs::set_permissions(&folder, Permissions::from_mode(0o755)));
        is_open.with_context(|| format!("cannot make {}", folder.display()))?;
        let (elsewhere, addresses) = addresses.split_at(EACH);
        let make = |name: &'static str, addresses: &[String]| {
            let path = folder.join(name);
            DatabaseVm::make(name, path, addresses, user.as_ref()).with_context(|| format!("cannot set up {name}"))
        };
        let elsewhere = make("elsewhere", elsewhere)?;
        let vms = VMS.into_iter().zip(addresses.chunks(EACH)).map(|(name, addresses)| make(name, addresses));
        Ok(Self { vms: vms.collect::<Result<_, _>>()?, elsewhere, user, folder, is_over: AtomicBool::new(false) })
    }

    /// `MEMBERS` as hooks read it, with the address `number` of each VM.
    pub fn members(&self, number: usize) -> String {
        let each = self.vms.iter().map(|vm| format!("{}={}", vm.name, vm.addresses[number]));
        each.collect::<Vec<_>>().join(" ")
    }

    /// A command for a program on the VM: as the servers' user, in the VM's folder, and ended with the thread that
    /// starts the program.
    pub fn command(&self, place: usize, program: &str) -> anyhow::Result<Command> {
        self.command_on(&self.vms[place], program)
    }

    fn command_on(&self, vm: &DatabaseVm, program: &str) -> anyhow::Result<Command> {
        ensure!(!self.is_over(), "{} starts nothing any more", vm.name);
        let program = programs::find(program).with_context(|| format!("{program} is not installed"))?;
        let mut command = processes::command(&program, self.user.as_ref());
        command.current_dir(&vm.folder).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a program to its end.
    pub fn run(&self, place: usize, program: &str, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.command(place, program)?.args(arguments).output();
        let output = output.with_context(|| format!("{program} cannot be started"))?;
        let told = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} {}: {}\n{told}", arguments.join(" "), output.status);
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts a server, whose output goes to a file in the VM's folder.
    pub fn spawn(&self, place: usize, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        self.spawn_on(&self.vms[place], program, arguments)
    }

    pub fn spawn_on(&self, vm: &DatabaseVm, program: &str, arguments: &[&str]) -> anyhow::Result<()> {
        let mut command = self.command_on(vm, program)?;
        let started = File::options().append(true).open(vm.log()).and_then(|log| {
            let said = log.try_clone()?;
            command.args(arguments).stdout(said).stderr(log).spawn()
        });
        let mut child = started.with_context(|| format!("{program} cannot be started on {}", vm.name))?;
        // Reaps the process as soon as the process ends, as init would.
        std::thread::spawn(move || child.wait());
        Ok(())
    }

    /// Hands a file or folder to the servers' user.
    pub fn own(&self, path: &Path) -> anyhow::Result<()> {
        own(path, self.user.as_ref())
    }

    /// Waits until a system is in the expected state, and returns the result of `look`.
    pub fn until<T>(&self, what: &str, mut look: impl FnMut() -> anyhow::Result<T>) -> anyhow::Result<T> {
        let began = Instant::now();
        loop {
            match look() {
                Ok(seen) => return Ok(seen),
                Err(_) if self.is_over() => bail!("the wait for {what} was cancelled"),
                Err(why) if began.elapsed() > LIMIT => return Err(why.context(format!("waited in vain for {what}"))),
                Err(_) => std::thread::sleep(LOOK_EVERY),
            }
        }
    }

    /// The power is cut.
    pub fn kill(&self, place: usize) {
        processes::end(&self.vms[place].folder);
    }

    pub fn freeze(&self, place: usize) {
        processes::signal(&self.vms[place].folder, Signal::SIGSTOP);
    }

    pub fn thaw(&self, place: usize) {
        processes::signal(&self.vms[place].folder, Signal::SIGCONT);
    }

    /// Replaces the data disk by an empty disk.
    pub fn lose_data(&self, place: usize) -> anyhow::Result<()> {
        let data = self.vms[place].data();
        fs::remove_dir_all(&data).with_context(|| format!("cannot remove {}", data.display()))
    }

    /// Ends all processes on the VMs, and prevents new processes.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
        processes::end(&self.folder);
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }
}

impl Drop for ThreeNodeBed {
    fn drop(&mut self) {
        self.end();
        // An error is ignored: the caller that made the parent folder finds the rest.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn own(path: &Path, user: Option<&User>) -> anyhow::Result<()> {
    let Some(user) = user else { return Ok(()) };
    let owned = chown(path, Some(user.uid.as_raw()), Some(user.gid.as_raw()));
    owned.with_context(|| format!("{} cannot be given to {}", path.display(), user.name))
}
