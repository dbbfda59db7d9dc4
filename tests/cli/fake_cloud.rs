//! `allclear fake-cloud`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use super::{allclear, program, stderr, stdout};

/// Killed when the test is over, however the test ends.
struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Serving {
    fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(program());
        let mut child = command.arg("fake-cloud").args(arguments).env_clear().stdout(Stdio::piped()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Self { child, out }
    }

    /// The next line: name and address.
    fn line(&mut self) -> (String, String) {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        let (who, address) = line.trim_end().split_once(' ').unwrap();
        (who.to_owned(), address.to_owned())
    }

    fn end(mut self) -> Option<i32> {
        super::signal(self.child.id(), nix::sys::signal::Signal::SIGTERM);
        self.child.wait().unwrap().code()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails only if the process has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn get(address: &str, path: &str) -> String {
    let host = address.strip_prefix("http://").unwrap();
    let host = host.split('/').next().unwrap();
    let mut connection = TcpStream::connect(host).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nMetadata: true\r\nConnection: close\r\n\r\n");
    connection.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn every_vm_has_an_address_that_answers_until_sigterm() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("requests.jsonl");
    let mut serving = Serving::start(&["--listen", "127.0.0.1:0", "--vms", "a,b", "--log", log.to_str().unwrap()]);
    let control = serving.line();
    assert_eq!(control.0, "control");
    assert!(get(&control.1, "/control/state").contains("\"events\":[]"));
    for vm in ["a", "b"] {
        let (who, address) = serving.line();
        assert_eq!(who, vm);
        let answer = get(&address, "/metadata/scheduledevents?api-version=2020-07-01");
        assert!(answer.contains("DocumentIncarnation"), "{answer}");
    }
    assert_eq!(serving.end(), Some(0));
    let logged = std::fs::read_to_string(&log).unwrap();
    assert_eq!(logged.lines().count(), 2, "{logged}");
}

#[test]
fn a_scenario_is_played_at_once_and_as_fast_as_asked() {
    let vms = ["--vms", "a", "--scenario", "user-reboot", "--speed", "1000"];
    let mut serving = Serving::start(&vms);
    let (_, control) = serving.line();
    let announced = || get(&control, "/control/state").contains("\"type\":\"Reboot\"");
    assert!(super::comes_true(announced), "the event is not announced");
    assert_eq!(serving.end(), Some(0));
}

#[test]
fn other_addresses_than_loopback_are_refused() {
    for address in ["0.0.0.0:0", "10.0.0.4:80", "[::]:0"] {
        let output = allclear(&["fake-cloud", "--listen", address, "--vms", "a"], &[]);
        assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""), "{address}");
        assert!(stderr(&output).contains("listens on loopback only"), "{address}: {}", stderr(&output));
    }
}

#[test]
fn an_unknown_scenario_is_answered_with_those_there_are() {
    let output = allclear(&["fake-cloud", "--vms", "a", "--scenario", "user-rebot"], &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("did you mean user-reboot?"), "{}", stderr(&output));
    assert!(stderr(&output).contains("two-vms-one-event"), "{}", stderr(&output));
}

#[test]
fn help_lists_the_scenarios() {
    let output = allclear(&["fake-cloud", "--help"], &[]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stdout(&output).contains("\n  user-redeploy "), "{}", stdout(&output));
    assert!(stdout(&output).contains("A GET of this address describes the control"), "{}", stdout(&output));
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = allclear(&["fake-cloud", "--listen", &address, "--vms", "a"], &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(1), ""));
    assert!(stderr(&output).contains(&format!("cannot listen on {address}")), "{}", stderr(&output));
}
