//! The attacker: a process of its own, under a different user if the test runs as root. A user with the right to
//! connect as a workload is the most hostile user without the replica's own rights.

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use nix::unistd::geteuid;

use super::attacks::Target;
use super::flood::{Flood, of_operators, of_sessions, of_status, of_tls, of_workloads};

/// A user id that no system has. Tests allow this user to connect.
pub(crate) const STRANGER: u32 = 64_220;
const RISEN: &str = "the flood has risen";

/// The listeners of one replica.
pub(crate) struct Doors<'d> {
    pub(crate) operators: &'d Path,
    pub(crate) workloads: &'d Path,
    pub(crate) status: &'d str,
    pub(crate) replicas: &'d str,
}

/// Floods until `told` is called, or until dropped.
pub(crate) struct Somebody {
    process: Child,
    said: BufReader<ChildStdout>,
}

impl Somebody {
    /// Returns when every attack has been tried. The sockets are made accessible to all users first, so that only the
    /// check of callers protects them.
    pub(crate) fn floods(doors: &Doors<'_>) -> Self {
        for (path, mode) in
            [(doors.operators.parent().unwrap(), 0o755), (doors.operators, 0o666), (doors.workloads, 0o666)]
        {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let mut flooding = Command::new(std::env::current_exe().unwrap());
        flooding
            .args([crate::own_test!(floods_until_its_input_ends), "--exact", "--ignored", "--nocapture"])
            .env("OPERATORS", doors.operators)
            .env("WORKLOADS", doors.workloads)
            .env("STATUS", doors.status)
            .env("REPLICAS", doors.replicas)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        if geteuid().is_root() {
            flooding.uid(STRANGER).gid(STRANGER);
        } else {
            println!("only root can be somebody else: the replica's own user floods it");
        }
        let mut process = flooding.spawn().unwrap();
        let mut said = BufReader::new(process.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains(RISEN) {
            line.clear();
            assert!(said.read_line(&mut line).unwrap() > 0, "nobody floods");
        }
        Self { process, said }
    }

    /// Ends the flood and returns the attacker's report.
    pub(crate) fn told(mut self) -> String {
        drop(self.process.stdin.take());
        let mut told = String::new();
        self.said.read_to_string(&mut told).unwrap();
        told
    }
}

impl Drop for Somebody {
    fn drop(&mut self) {
        // The process may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
#[ignore = "is run by another test, as somebody else"]
async fn floods_until_its_input_ends() {
    let names = ["OPERATORS", "WORKLOADS", "STATUS", "REPLICAS"];
    let [Ok(operators), Ok(workloads), Ok(status), Ok(replicas)] = names.map(std::env::var) else { return };
    let workloads = Target::Socket(workloads.into());
    let mut flood = Flood::of(of_sessions(&workloads));
    flood.rises().await;
    let mut attacks = of_operators(&Target::Socket(operators.into()));
    attacks.extend(of_workloads(&workloads));
    attacks.extend(of_status(&Target::Port(status.parse().unwrap())));
    attacks.extend(of_tls(&Target::Port(replicas.parse().unwrap())));
    flood.swell(attacks);
    flood.rises().await;
    println!("\n{RISEN}");
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    ended.await.unwrap().unwrap();
    println!("{}", flood.told());
}
