//! Claim: the visible result of each command is as in the contract: output, messages and exit status.

mod bench;
mod check;
mod confidence;
mod demo;
mod doctor;
mod doctor_clock;
mod doctor_metadata;
mod doctor_user;
mod exits;
mod fake_cloud;
mod hook;
mod manual;
mod policy;
mod run;
mod servers;
mod usage;
mod wave;

use crate::clients::python;
use crate::machine_share::{self, Stage};

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::TcpSocket;

/// Runs the program to its end, with only the given environment.
fn allclear(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(program()).args(arguments).env_clear().envs(environment.iter().copied()).output().unwrap()
}

/// Waits for a place among the tests whose programs start whole clusters.
fn stage() -> Stage {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(machine_share::stage())
}

/// Waits until no other test has a program that starts a whole cluster.
fn whole_stage() -> Stage {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(machine_share::whole_stage())
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_allclear")
}

/// Writes a configuration to a file of this folder.
fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("allclear.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Addresses of this test alone for as long as the test keeps the sockets, even without a listener. The kernel does not
/// assign such a port to a caller asking for any port, and a caller asking for exactly this port may share the port.
fn free_addresses<const COUNT: usize>() -> [(TcpSocket, SocketAddr); COUNT] {
    std::array::from_fn(|_| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    })
}

/// Sends a signal to a process that this test started and has not reaped.
fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// Waits until this holds; false after five minutes, as long as no step takes even on a busy machine.
fn comes_true(mut holds: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + Duration::from_mins(5);
    while !holds() {
        if Instant::now() > end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    true
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
