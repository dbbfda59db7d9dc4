//! The contents of `deploy/notify`: the receiver that checks and drops repeats, and the token for an event hub.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::inbox::Inbox;
use super::told::{file, plan, secret, table};

const LIMIT: Duration = Duration::from_mins(2);

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/notify").join(name)
}

/// The receiver as a process.
struct Python {
    child: Child,
    url: String,
    lines: Receiver<String>,
}

impl Python {
    fn start(key: &str) -> Self {
        let mut child = Command::new("python3")
            .arg(shipped("receive.py"))
            .args(["--listen", "127.0.0.1:0", "--key", key])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut said, stdout) = (String::new(), child.stdout.take().unwrap());
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{said}")).to_owned();
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, url: format!("http://{address}/inbox"), lines }
    }

    fn next(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(LIMIT).unwrap()).unwrap()
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_receiver_takes_what_is_signed_prints_it_once_and_refuses_everything_else() {
    let (copy, folder) = (Inbox::open().await, TempDir::new().unwrap());
    let (key, _) = secret(&folder, "key", 7);
    let python = Python::start(&key);
    let signed = format!("secret_file = {key:?}\ntopics = [\"announced\", \"all_clear\"]");
    let cluster = plan(&(table("python", &python.url, &signed) + &table("copy", &copy.url, &signed))).start().await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": "db-0" })).await;
    assert_eq!(python.next()["subject"], id);

    let genuine = copy.has(&["announced"]).await.swap_remove(0);
    let http = allclear::http_client::plain().unwrap().build().unwrap();
    let post = async |headers: &[(&str, &str)], body: &[u8]| {
        let mut request = http.post(&python.url).body(body.to_vec());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap().status().as_u16()
    };
    let names = ["webhook-id", "webhook-timestamp", "webhook-signature"];
    let headers: Vec<(&str, &str)> = names.map(|name| (name, genuine.headers[name].as_str())).into();
    assert_eq!(post(&headers, &genuine.body).await, 204, "a repeat is taken");
    assert_eq!(post(&headers[..2], &genuine.body).await, 401);
    let changed = String::from_utf8(genuine.body.clone()).unwrap().replace("Reboot", "Freeze");
    assert_eq!(post(&headers, changed.as_bytes()).await, 401);
    for (place, wrong) in [(0, "another"), (1, "1767225600"), (1, "soon"), (2, "v1,AAAA")] {
        let mut headers = headers.clone();
        headers[place].1 = wrong;
        assert_eq!(post(&headers, &genuine.body).await, 401, "{wrong}");
    }

    cluster.hooks.open("gate");
    let next = python.next();
    assert_eq!(next["type"], "allclear.event.all_clear.v1", "the repeat was not printed: {next}");
}

/// As in the documented example, in another language: the digest of resource and time under the key.
fn expected(resource: &str, expires_at: &str, key: &str) -> String {
    use base64::Engine as _;
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, key.as_bytes());
    let digest = ring::hmac::sign(&key, format!("{resource}\n{expires_at}").as_bytes());
    let encoded = base64::prelude::BASE64_STANDARD.encode(digest);
    encoded.replace('+', "%2B").replace('/', "%2F").replace('=', "%3D")
}

#[test]
fn a_token_for_an_event_hub_is_written_whole_and_for_nobody_else() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let key = file(folder.path(), "key", "some/key+of=a policy\n");
    let out = folder.path().join("token");
    let write = || {
        let status = Command::new(shipped("event-hub-token"))
            .args(["--hub", "https://orders.servicebus.windows.net/notices", "--policy", "send", "--key", &key])
            .arg("--out")
            .arg(&out)
            .status()
            .unwrap();
        assert!(status.success());
        std::fs::read_to_string(&out).unwrap()
    };
    let token = write();
    let fields = token.trim().strip_prefix("SharedAccessSignature ").unwrap();
    let field = |name: &str| fields.split('&').find_map(|field| field.strip_prefix(name)?.strip_prefix('=')).unwrap();
    let resource = "https%3A%2F%2Forders.servicebus.windows.net%2Fnotices";
    assert_eq!((field("sr"), field("skn")), (resource, "send"));
    assert_eq!(field("sig"), expected(resource, field("se"), "some/key+of=a policy"));
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o640)).unwrap();
    write();
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
}
