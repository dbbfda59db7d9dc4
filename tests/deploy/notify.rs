//! Messages of a real replica to a service manager.

use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::program;

const LIMIT: Duration = Duration::from_mins(2);

struct Replica(Child);

impl Drop for Replica {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn next(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 256];
    let length = manager.recv(&mut bytes).expect("nothing was said in time");
    String::from_utf8_lossy(&bytes[..length]).trim().to_owned()
}

#[test]
fn a_replica_that_is_alone_of_three_says_that_it_serves_goes_on_and_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("manager.sock");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(LIMIT)).unwrap();
    let held = [(); 5].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
    let [cluster, status, b, c, metadata] = held.map(|held| held.local_addr().unwrap());
    let configuration = folder.path().join("allclear.toml");
    let place = folder.path().display();
    let text = format!(
        r#"
replica = {{ name = "a", data_dir = "{place}/data" }}
cluster.name = "t"
cluster.replicas = {{ a = "{cluster}", b = "{b}", c = "{c}" }}
cluster.tls = {{ cert = "{place}/a/node.pem", key = "{place}/a/node.key", ca = "{place}/a/ca.pem" }}
metadata.endpoint = "http://{metadata}"
status.listen = "{status}"
operator.socket = "{place}/operator.sock"
workloads.socket = "{place}/workloads.sock"
"#
    );
    std::fs::write(&configuration, text).unwrap();
    for made in [["init", "--cluster", "t"], ["issue", "--replica", "a"]] {
        let making = Command::new(program()).arg("certs").args(made).arg("--dir").arg(folder.path()).output().unwrap();
        assert!(making.status.success(), "{making:?}");
    }

    let mut command = Command::new(program());
    command.args(["run", "--config"]).arg(&configuration);
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000");
    let mut replica = Replica(command.spawn().unwrap());

    assert_eq!(next(&manager), "READY=1");
    for address in [cluster, status] {
        TcpStream::connect(address).expect("it is ready, so it serves");
    }
    // neither the other replicas nor the metadata service exist; the watchdog messages arrive regardless
    for _ in 0..20 {
        assert_eq!(next(&manager), "WATCHDOG=1");
    }
    kill(Pid::from_raw(i32::try_from(replica.0.id()).unwrap()), Signal::SIGTERM).unwrap();
    let last = std::iter::repeat_with(|| next(&manager)).find(|said| said != "WATCHDOG=1");
    assert_eq!(last.as_deref(), Some("STOPPING=1"));
    assert!(replica.0.wait().unwrap().success());
}
