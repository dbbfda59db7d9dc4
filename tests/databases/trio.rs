//! Three VMs, each with a folder, addresses and a database server; and what a system has to say of itself so that it can
//! be tested.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::User;
use tempfile::TempDir;

use super::hooks;
use super::plan::free_addresses;
use super::processes;
use super::record::Row;

pub(crate) const VMS: [&str; 3] = ["db-0", "db-1", "db-2"];

/// Far beyond what anything takes on a loaded machine.
const LIMIT: Duration = Duration::from_mins(2);

/// A database system. Its servers are known by their place among the three, and hold no state of the test: whatever a
/// hook changes about them is seen where it is, on the disk and on the wire.
pub(crate) trait System: Send + Sync + 'static {
    /// As people call it.
    const NAME: &'static str;
    /// Its tables in `deploy/hooks`, which name its hook set.
    const TABLES: &'static [&'static str];
    /// What must be installed.
    const PROGRAMS: &'static [&'static str];
    /// Whose rights its servers have when the test runs as root; `nobody` where there is no such user.
    const USER: &'static str;
    /// It finds a new primary by itself.
    const FAILS_OVER: bool = false;
    /// A primary that was restarted takes no writes until somebody makes it the primary again.
    const COMES_BACK_CLOSED: bool = false;
    /// One connection of a client.
    type Client: Client;

    /// Makes the three members and starts them, the first as the primary; returns when all hold the same.
    fn found(trio: &Trio);

    /// Starts what a VM that boots starts, the server for one; nothing where its data is gone.
    fn boot(trio: &Trio, place: usize);

    /// Makes one of these the primary, as a person would who was called. Never called where it fails over by itself.
    fn promote(_trio: &Trio, _among: &[usize]) {
        unreachable!("{} does that by itself", Self::NAME)
    }

    /// The place of the member that takes writes; `None` while there is none, or it does not say within a second.
    fn primary(trio: &Trio) -> Option<usize>;

    /// Values of the hooks' `env` tables on this VM, instead of those that the tables in `deploy/hooks` give as examples.
    fn settings(trio: &Trio, place: usize) -> Vec<(&'static str, String)>;

    /// A client that knows this member looks for one that takes writes there, and refuses any other. Nothing of it takes
    /// longer than the patience, neither now nor later.
    fn connect(trio: &Trio, place: usize, patience: Duration) -> io::Result<Self::Client>;

    /// Every row that this member holds.
    fn rows(trio: &Trio, place: usize) -> io::Result<Vec<Row>>;
}

pub(crate) trait Client {
    /// Returns when the row is acknowledged. After an error nobody knows whether it is there, and the client is of no
    /// further use.
    fn write(&mut self, row: Row) -> io::Result<()>;
}

/// Where it is, and who it is.
pub(crate) struct Vm {
    pub(crate) name: &'static str,
    /// Whatever its server keeps stands in `data` in there.
    pub(crate) folder: PathBuf,
    /// For the server, and for what else the system needs; HOST:PORT.
    pub(crate) addresses: Vec<String>,
}

impl Vm {
    pub(crate) fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What its server says, whoever started it.
    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join("server.log")
    }

    pub(crate) fn host(&self) -> &str {
        self.addresses[0].split_once(':').unwrap().0
    }

    /// Of its server.
    pub(crate) fn port(&self) -> &str {
        self.addresses[0].split_once(':').unwrap().1
    }
}

pub(crate) struct Trio {
    pub(crate) vms: Vec<Vm>,
    /// A machine of somebody else, which no event takes.
    pub(crate) elsewhere: Vm,
    pub(crate) user: Option<User>,
    _folder: TempDir,
}

impl Trio {
    /// Three VMs without anything on them but the hooks.
    pub(crate) fn of<S: System>() -> Self {
        let folder = TempDir::with_prefix("db").unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let user = processes::ordinary_user(&[S::USER]);
        let mut addresses = free_addresses(12);
        let mut make = |name: &'static str| {
            let vm = Vm { name, folder: folder.path().join(name), addresses: addresses.split_off(addresses.len() - 3) };
            fs::create_dir(&vm.folder).unwrap();
            hooks::install(&vm.folder);
            File::create(vm.log()).unwrap();
            for path in [&vm.folder, &vm.log()] {
                let (uid, gid) = user.as_ref().map(|user| (user.uid.as_raw(), user.gid.as_raw())).unzip();
                chown(path, uid, gid).unwrap();
            }
            vm
        };
        let elsewhere = make("elsewhere");
        Self { vms: VMS.into_iter().map(make).collect(), elsewhere, user, _folder: folder }
    }

    /// `MEMBERS` as hooks read it, with the address of this number of each VM.
    pub(crate) fn members(&self, number: usize) -> String {
        let each = self.vms.iter().map(|vm| format!("{}={}", vm.name, vm.addresses[number]));
        each.collect::<Vec<_>>().join(" ")
    }

    /// A program on that VM: as the servers' user, in the VM's folder, and it ends with the test.
    pub(crate) fn command(&self, place: usize, program: &str) -> Command {
        self.command_on(&self.vms[place], program)
    }

    fn command_on(&self, vm: &Vm, program: &str) -> Command {
        let mut command = processes::command(&find(program).unwrap(), self.user.as_ref());
        command.current_dir(&vm.folder).stdin(Stdio::null());
        command
    }

    /// Runs one to its end.
    pub(crate) fn run(&self, place: usize, program: &str, arguments: &[&str]) -> String {
        let output = self.command(place, program).args(arguments).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} {}: {}\n{told}", arguments.join(" "), output.status);
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Starts a server, whose output goes to a file in the VM's folder.
    pub(crate) fn spawn(&self, place: usize, program: &str, arguments: &[&str]) {
        self.spawn_on(&self.vms[place], program, arguments);
    }

    pub(crate) fn spawn_on(&self, vm: &Vm, program: &str, arguments: &[&str]) {
        let log = File::options().append(true).open(vm.log()).unwrap();
        let mut command = self.command_on(vm, program);
        let mut child = command.args(arguments).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        // What has ended is gone at once, as it is where init started it.
        std::thread::spawn(move || child.wait());
    }

    /// The power is cut.
    pub(crate) fn kill(&self, place: usize) {
        processes::end(&self.vms[place].folder);
    }

    pub(crate) fn freeze(&self, place: usize) {
        processes::signal(&self.vms[place].folder, Signal::SIGSTOP);
    }

    pub(crate) fn thaw(&self, place: usize) {
        processes::signal(&self.vms[place].folder, Signal::SIGCONT);
    }

    /// The disk with the data is another one, and empty.
    pub(crate) fn lose_data(&self, place: usize) {
        fs::remove_dir_all(self.vms[place].data()).unwrap();
    }
}

impl Drop for Trio {
    fn drop(&mut self) {
        for vm in self.vms.iter().chain([&self.elsewhere]) {
            processes::end(&vm.folder);
            let log = fs::read_to_string(vm.log()).unwrap_or_default();
            if std::thread::panicking() {
                let lines: Vec<_> = log.lines().collect();
                println!("---- the server of {}\n{}", vm.name, lines[lines.len().saturating_sub(30)..].join("\n"));
            }
        }
    }
}

/// Waits until a system is as wanted, and returns what was seen.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let began = Instant::now();
    loop {
        match look() {
            Ok(seen) => return seen,
            Err(why) => assert!(began.elapsed() < LIMIT, "waited in vain for {what}: {why}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Where Debian keeps programs that are not in the path of an ordinary user.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var("PATH").unwrap_or_default();
    // First those that any user can read: one's own path may begin with a folder that is closed to others.
    let mut folders: Vec<PathBuf> = ["/usr/bin", "/usr/sbin", "/usr/local/sbin"].map(PathBuf::from).into();
    folders.extend(std::env::split_paths(&path));
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    folders.extend(versions.map(|version| version.path().join("bin")));
    folders.iter().map(|folder| folder.join(program)).find(|path: &PathBuf| Path::exists(path))
}

/// Whether the system can be tried here. Where it cannot, this is said; and where everything has to be tried, that is a
/// failure.
pub(crate) fn is_installed<S: System>() -> bool {
    let Some(missing) = S::PROGRAMS.iter().find(|program| find(program).is_none()) else { return true };
    println!("SKIPPED: {} is not installed, there is no {missing}", S::NAME);
    assert!(std::env::var_os("CI").is_none(), "{missing} is missing, and nothing may be skipped where CI is set");
    false
}
