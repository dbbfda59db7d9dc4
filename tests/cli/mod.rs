//! Claim: what people see of each command is what the contract says: output, messages and exit status.

mod bench;
mod check;
mod confidence;
mod demo;
mod doctor;
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

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::net::TcpSocket;

/// Runs the program to its end, with nothing in its environment but what is given.
fn allclear(arguments: &[&str], environment: &[(&str, &str)]) -> Output {
    Command::new(program()).args(arguments).env_clear().envs(environment.iter().copied()).output().unwrap()
}

fn program() -> &'static str {
    env!("CARGO_BIN_EXE_allclear")
}

/// A configuration in a file of that folder.
fn written(folder: &Path, text: &str) -> String {
    let path = folder.join("allclear.toml");
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Addresses of this test alone as long as it keeps the sockets, though nobody listens there. The kernel gives such a port
/// to nobody who asks for any, and whoever asks for exactly that one may share it.
fn free_addresses<const COUNT: usize>() -> [(TcpSocket, SocketAddr); COUNT] {
    std::array::from_fn(|_| {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_reuseaddr(true).unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, 3), 0).into()).unwrap();
        let address = socket.local_addr().unwrap();
        (socket, address)
    })
}

/// To a process that this test started and has not reaped.
fn signal(pid: u32, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(pid).unwrap()), signal).unwrap();
}

/// Between two looks at something that is waited for; always false, to be used in a search.
fn pause() -> bool {
    std::thread::sleep(Duration::from_millis(50));
    false
}

fn stdout(output: &Output) -> &str {
    std::str::from_utf8(&output.stdout).unwrap()
}

fn stderr(output: &Output) -> &str {
    std::str::from_utf8(&output.stderr).unwrap()
}
