//! A container without an engine: the files of the image as the root, and the user of the Dockerfile. The replica handles
//! an event with a hook over HTTP.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::time::{Instant, sleep};

use super::cloud::Cloud;
use super::image::Image;
use super::{done, shipped, told};

/// The environment is empty, and has no path for programs.
const CHROOT: &str = "/usr/sbin/chroot";
const LIMIT: Duration = Duration::from_mins(2);

struct Contained {
    replica: Child,
    root: tempfile::TempDir,
}

impl Drop for Contained {
    fn drop(&mut self) {
        // The replica is the first process of its namespace, and does not end with `unshare`: the change of its user
        // takes this bond away.
        let children = format!("/proc/{0}/task/{0}/children", self.replica.id());
        for child in std::fs::read_to_string(children).unwrap_or_default().split_whitespace() {
            let _ = kill(Pid::from_raw(child.parse().unwrap()), Signal::SIGKILL);
        }
        let _ = self.replica.kill();
        let _ = self.replica.wait();
    }
}

/// The user and the paths that the last stage of the Dockerfile names.
fn user() -> String {
    let text = std::fs::read_to_string(shipped("container/Dockerfile")).unwrap();
    text.lines().find_map(|line| line.strip_prefix("USER ")).unwrap().to_owned()
}

fn command(root: &Path) -> Command {
    let mut command = Command::new(CHROOT);
    command.arg("--userspec").arg(user()).arg(root).arg("/usr/bin/allclear").env_clear();
    command
}

/// Answers every request with an empty 200: the hook is done. Sends one message for each request.
fn database() -> (SocketAddr, std::sync::mpsc::Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (asked, hears) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            // a small request arrives in one read
            let _ = stream.read(&mut [0; 8192]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if asked.send(()).is_err() {
                return;
            }
        }
    });
    (address, hears)
}

fn started(program: &Path, metadata: &str, database: SocketAddr) -> Contained {
    let root = tempfile::tempdir().unwrap();
    Image::built(program).unpack(root.path());
    std::fs::create_dir(root.path().join("proc")).unwrap();
    let status = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let text = format!(
        r#"
replica = {{ name = "db-0", data_dir = "/var/lib/allclear" }}
metadata.endpoint = "{metadata}"
status.listen = "{status}"

[[workload]]
name = "db"

[[workload.hook]]
phase = "drain"
http = "http://{database}/drain"
"#
    );
    std::fs::write(root.path().join("etc/allclear/allclear.toml"), text).unwrap();
    done(Command::new("chmod").arg("a+rX").arg(root.path()));
    let mut unshare = Command::new("unshare");
    let proc = format!("--mount-proc={}", root.path().join("proc").display());
    unshare.args(["--pid", "--fork", "--kill-child", "--mount", &proc]);
    unshare.args([CHROOT, "--userspec"]).arg(user()).arg(root.path());
    unshare.args(["/usr/bin/allclear", "run", "--config", "/etc/allclear/allclear.toml"]).env_clear();
    Contained { replica: unshare.spawn().unwrap(), root }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let ends = Instant::now() + LIMIT;
    while !holds().await {
        assert!(Instant::now() < ends, "waited in vain: {what}");
        sleep(Duration::from_millis(100)).await;
    }
}

/// `ALLCLEAR_STATIC` names the program: `cargo build --target x86_64-unknown-linux-musl`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs root, buildah and a static program: ALLCLEAR_STATIC"]
async fn the_static_program_answers_an_event_in_an_empty_root() {
    let program = std::env::var_os("ALLCLEAR_STATIC").expect("ALLCLEAR_STATIC names no program");
    let linked = Command::new("ldd").arg(&program).output().unwrap();
    assert!(
        ["statically linked", "not a dynamic"].iter().any(|word| told(&linked).contains(word)),
        "{}",
        told(&linked)
    );
    let cloud = Cloud::of(&["db-0"]).await;
    let (address, asked) = database();
    let contained = started(Path::new(&program), &cloud.endpoint("db-0"), address);
    let answers = async || command(contained.root.path()).arg("status").output().unwrap().status.success();
    until("it answers its own user", answers).await;
    cloud.announce(serde_json::json!({ "type": "Reboot", "vm": "db-0" })).await;
    until("the event is approved", async || !cloud.posts().await.is_empty()).await;
    asked.try_recv().expect("the hook was run before the approval");
    assert_eq!(cloud.posts().await.len(), 1);
}
