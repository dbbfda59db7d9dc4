//! A network that the kernel cuts: each replica in a namespace of its own, all on one bridge.

use std::fs::File;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sched::{CloneFlags, setns};

use super::links::Forwarder;

/// How many of this process have been made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// One for each place, and one with the bridge between them. They end with it.
pub(crate) struct Namespaces {
    name: String,
    count: usize,
    forwarder: Forwarder,
}

impl Namespaces {
    /// Why not, where the machine or the user cannot.
    pub(crate) fn make(count: usize) -> Result<Self, String> {
        let name = format!("ac{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let made = Self { name, count, forwarder: Forwarder::new() };
        let switch = made.switch();
        ip(&["netns", "add", &switch])?;
        ip(&["-n", &switch, "link", "add", "br0", "type", "bridge"])?;
        ip(&["-n", &switch, "link", "set", "br0", "up"])?;
        for place in 0..count {
            let (own, port) = (made.of(place), port(place));
            ip(&["netns", "add", &own])?;
            let pair = ["-n", &switch, "link", "add", &port, "type", "veth", "peer", "name", "eth0", "netns", &own];
            ip(&pair)?;
            ip(&["-n", &switch, "link", "set", &port, "master", "br0", "up"])?;
            ip(&["-n", &own, "address", "add", &format!("10.99.0.{}/24", place + 1), "dev", "eth0"])?;
            ip(&["-n", &own, "link", "set", "eth0", "up"])?;
            ip(&["-n", &own, "link", "set", "lo", "up"])?;
        }
        Ok(made)
    }

    /// The namespace of a replica.
    pub(crate) fn of(&self, place: usize) -> String {
        format!("{}-{place}", self.name)
    }

    fn switch(&self) -> String {
        format!("{}-switch", self.name)
    }

    /// Where its replica listens.
    pub(crate) fn address(place: usize) -> String {
        format!("10.99.0.{}:7420", place + 1)
    }

    /// What listens at this address outside can be reached at the same one from inside: the replica's metadata
    /// endpoint, which no cut concerns.
    pub(crate) fn lead_out(&self, place: usize, address: &str) {
        let (namespace, inside) = (self.of(place), address.to_owned());
        // A socket belongs to where it was made, whoever uses it later; the thread must not go on in there.
        let made = std::thread::spawn(move || {
            let file = File::open(format!("/run/netns/{namespace}")).unwrap();
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            TcpListener::bind(inside).unwrap()
        });
        self.forwarder.forward(made.join().unwrap(), address.to_owned());
    }

    /// Its cable is pulled out of the bridge; it notices nothing but silence.
    pub(crate) fn cut_off(&self, place: usize) {
        ip(&["-n", &self.switch(), "link", "set", &port(place), "nomaster"]).unwrap();
    }

    pub(crate) fn heal(&self, place: usize) {
        ip(&["-n", &self.switch(), "link", "set", &port(place), "master", "br0"]).unwrap();
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for namespace in (0..self.count).map(|place| self.of(place)).chain([self.switch()]) {
            // One that was never made is not there to be removed.
            let _ = ip(&["netns", "delete", &namespace]);
        }
    }
}

fn port(place: usize) -> String {
    format!("port{place}")
}

fn ip(arguments: &[&str]) -> Result<(), String> {
    let output = Command::new("ip").args(arguments).output().map_err(|error| format!("ip: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(()) } else { Err(format!("ip {}: {}", arguments.join(" "), told.trim())) }
}
