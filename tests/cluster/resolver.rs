//! A DNS server of a test, on loopback: the server answers as the test wants, or not at all. A program that is started
//! by the launcher resolves names only here, in a mount namespace with its own files in place of the system's name
//! settings.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use tempfile::TempDir;

/// The number of resolvers that this process has made.
static MADE: AtomicUsize = AtomicUsize::new(0);

const IPV4: [u8; 2] = [0, 1];
/// The program is started by a shell with `exec`, so the process is the program's own.
const LAUNCH: &str = r#"
mount --bind "$1" /etc/resolv.conf
mount --bind "$2" /etc/hosts
if [ -e /etc/nsswitch.conf ]; then mount --bind "$3" /etc/nsswitch.conf; fi
shift 3
exec "$@""#;

type Zone = Arc<Mutex<BTreeMap<String, Vec<Ipv4Addr>>>>;

/// A running DNS server; drop stops the server.
pub(crate) struct Resolver {
    folder: TempDir,
    zone: Zone,
    hangs: Arc<AtomicBool>,
    over: Arc<AtomicBool>,
    serving: Option<JoinHandle<()>>,
}

impl Resolver {
    /// Returns `None`, and prints the reason, if the machine or the user cannot make a resolver.
    pub(crate) fn start() -> Option<Self> {
        let started = Self::try_start();
        started.inspect_err(|why| println!("skipped, no names of its own can be made here: {why}")).ok()
    }

    fn try_start() -> Result<Self, String> {
        let [high, low] = u16::try_from(std::process::id() % 0xffff).unwrap().to_be_bytes();
        let made = u8::try_from(MADE.fetch_add(1, Ordering::Relaxed) % 100).unwrap();
        let address = Ipv4Addr::new(127, 100 + made, high, low);
        let socket = UdpSocket::bind((address, 53)).map_err(|error| format!("{address}:53: {error}"))?;
        socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let folder = TempDir::with_prefix("ac").unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        // Longer than any test waits for a single answer.
        write("resolv.conf", &format!("nameserver {address}\noptions timeout:30 attempts:3\n"));
        write("hosts", "127.0.0.1 localhost\n");
        write("nsswitch.conf", "hosts: files dns\n");
        let (zone, hangs, over) = (Zone::default(), Arc::new(AtomicBool::default()), Arc::new(AtomicBool::default()));
        let serving = std::thread::spawn({
            let (zone, hangs, over) = (zone.clone(), hangs.clone(), over.clone());
            move || serve(&socket, &zone, &hangs, &over)
        });
        let made = Self { folder, zone, hangs, over, serving: Some(serving) };
        let launcher = made.launcher();
        let tried = Command::new(&launcher[0]).args(&launcher[1..]).arg("true").stdin(Stdio::null()).output();
        let tried = tried.map_err(|error| format!("unshare: {error}"))?;
        if tried.status.success() { Ok(made) } else { Err(String::from_utf8_lossy(&tried.stderr).trim().to_owned()) }
    }

    /// The command prefix for a program that resolves names with this server.
    pub(crate) fn launcher(&self) -> Vec<String> {
        let unshare = ["unshare", "--mount", "--propagation", "private", "sh", "-euc", LAUNCH, "sh"];
        let files = ["resolv.conf", "hosts", "nsswitch.conf"].map(|name| self.folder.path().join(name));
        let files = files.iter().map(|file| file.display().to_string());
        unshare.into_iter().map(str::to_owned).chain(files).collect()
    }

    /// Sets the host's addresses from now on, in this order.
    pub(crate) fn says(&self, host: &str, addresses: &[[u8; 4]]) {
        let addresses = addresses.iter().copied().map(Ipv4Addr::from).collect();
        self.zone.lock().unwrap().insert(host.to_owned(), addresses);
    }

    /// Removes the host.
    #[allow(dead_code, reason = "not every suite does")]
    pub(crate) fn forgets(&self, host: &str) {
        self.zone.lock().unwrap().remove(host);
    }

    /// Sets whether the server leaves every query without an answer.
    #[allow(dead_code, reason = "not every suite does")]
    pub(crate) fn hangs(&self, hangs: bool) {
        self.hangs.store(hangs, Ordering::SeqCst);
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        if let Some(serving) = self.serving.take() {
            let _ = serving.join();
        }
    }
}

fn serve(socket: &UdpSocket, zone: &Zone, hangs: &AtomicBool, over: &AtomicBool) {
    let mut bytes = [0; 512];
    while !over.load(Ordering::SeqCst) {
        let Ok((size, from)) = socket.recv_from(&mut bytes) else { continue };
        if hangs.load(Ordering::SeqCst) {
            continue;
        }
        if let Some(answer) = answer(&bytes[..size], zone) {
            let _ = socket.send_to(&answer, from);
        }
    }
}

/// The answer to a single question (RFC 1035). An unknown host does not exist, and no host has an IPv6 address.
fn answer(asked: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let mut at = 12;
    let mut labels = Vec::new();
    while let Some(length @ 1..) = asked.get(at).map(|length| usize::from(*length)) {
        labels.push(String::from_utf8_lossy(asked.get(at + 1..=at + length)?).to_lowercase());
        at += length + 1;
    }
    let kind: [u8; 2] = asked.get(at + 1..at + 3)?.try_into().ok()?;
    let zone = zone.lock().unwrap();
    let known = zone.get(&labels.join("."));
    let told: &[Ipv4Addr] = known.filter(|_| kind == IPV4).map_or(&[], Vec::as_slice);
    let outcome = if known.is_some() { 0x80 } else { 0x83 };
    let count = u8::try_from(told.len()).unwrap();
    let mut answer = vec![asked[0], asked[1], 0x81, outcome, 0, 1, 0, count, 0, 0, 0, 0];
    answer.extend(asked.get(12..at + 5)?);
    for address in told {
        // The name of the question, type A, class IN, with a TTL of 0.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
        answer.extend(address.octets());
    }
    Some(answer)
}
