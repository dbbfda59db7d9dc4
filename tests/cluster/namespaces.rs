//! A network that the kernel cuts: each replica in a namespace of its own, all on the same bridge.

use std::fs::File;
use std::net::TcpListener;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

use nix::sched::{CloneFlags, setns};

use super::links::Forwarder;

/// The number of `Namespaces` that this process has made.
static MADE: AtomicUsize = AtomicUsize::new(0);

/// A network namespace for each place, and another with the bridge between the places. Drop deletes the namespaces.
pub(crate) struct Namespaces {
    name: String,
    count: usize,
    forwarder: Forwarder,
}

impl Namespaces {
    /// Returns the reason if the machine or the user cannot make namespaces.
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

    /// The listen address of the replica at this place.
    pub(crate) fn address(place: usize) -> String {
        format!("10.99.0.{}:7420", place + 1)
    }

    /// Makes the listener at an outside address reachable at the same address from inside: the replica's metadata
    /// endpoint, unaffected by cuts.
    pub(crate) fn lead_out(&self, place: usize, address: &str) {
        let (namespace, inside) = (self.of(place), address.to_owned());
        // A socket belongs to its namespace of creation, on any thread; the creating thread must not continue inside.
        let made = std::thread::spawn(move || {
            let file = File::open(format!("/run/netns/{namespace}")).unwrap();
            setns(file, CloneFlags::CLONE_NEWNET).unwrap();
            TcpListener::bind(inside).unwrap()
        });
        self.forwarder.forward(made.join().unwrap(), address.to_owned());
    }

    /// Detaches the replica's link from the bridge; the replica notices only silence.
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
            // A namespace that was never made cannot be deleted.
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
