//! A mark in every possible secret, and every delivery fails: the mark appears in no output.

use std::fs;
use std::path::Path;
use std::process::Command;

use allclear::wire::pb::allclear::operator::v1::Event;
use allclear::wire::pb::allclear::workload::v1 as pb;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::json;
use tempfile::TempDir;

use super::cluster::Cluster;
use super::collector::Collector;
use super::dialled::{client, hello};
use super::inbox::{Inbox, Mood};
use super::plan::free_addresses;
use super::told::{file, table};

/// Occurs in no word of the program's own.
const MARK: &str = "m4rk";
/// A mark in addresses, which are no place for a secret: `check` prints addresses, and no other output does.
const SEEN: &str = "s33n";

fn program(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_allclear")).args(arguments).output().unwrap();
    (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
}

/// The tables of a replica's certificate, and the secret parts of its key.
fn certificate(folder: &Path, name: &str) -> (String, Vec<String>) {
    let (dir, shown) = (folder.join("ca"), folder.join("ca").display().to_string());
    if !dir.exists() {
        assert_eq!(program(&["certs", "init", "--dir", &shown, "--cluster", "tests"]).0, Some(0));
    }
    assert_eq!(program(&["certs", "issue", "--dir", &shown, "--replica", name]).0, Some(0));
    let path = |file: &str| dir.join(name).join(file);
    let key = fs::read_to_string(path("node.key")).unwrap();
    let secret = key.lines().filter(|line| !line.starts_with('-')).map(str::to_owned).collect();
    let [cert, key, ca] = ["node.pem", "node.key", "ca.pem"].map(|file| path(file).display().to_string());
    (format!("[cluster.tls]\ncert = \"{cert}\"\nkey = \"{key}\"\nca = \"{ca}\"\n"), secret)
}

fn workloads(folder: &Path) -> String {
    let token = file(folder, "hook.token", &format!("{MARK}-in-a-file"));
    format!(
        r#"
[[workload]]
name = "database"
role = {{ http = "http://127.0.0.1:1/role?{SEEN}" }}
role_every = "100ms"
[[workload.hook]]
phase = "drain"
command = ["/bin/sh", "-c", """env; env >&2; echo "progress: as $PASSWORD, $PLAIN, $TOKEN, $LINES" | fold -w 6
    echo progress: as $PASSWORD, $PLAIN, $TOKEN, $LINES; sleep 1; (set -x; echo $PASSWORD at $DSN) >&2; exit 1"""]
attempts = 1
env_shown = ["SHOWN"]
env_files = {{ TOKEN = "{token}" }}
[workload.hook.env]
PASSWORD = "{MARK}-password"
DSN = "postgres://me:{MARK}-dsn@db-0/orders"
PLAIN = "{MARK}-of-no-known-name"
LINES = "{MARK}-first\n{MARK}-second"
SHOWN = "harmless"
[[workload]]
name = "proxy"
[[workload.hook]]
phase = "drain"
http = "http://127.0.0.1:1/drain?{SEEN}"
"#
    )
}

/// Receivers without any possible delivery, each for a different reason.
fn receivers(folder: &Path, angry: &Inbox) -> String {
    let marked = |name: &str, before: &str| file(folder, name, &format!("{before}{MARK}-{name}"));
    let key = BASE64_STANDARD.encode(format!("{MARK}-a-key-of-32-bytes-that-signs"));
    let (token, key) = (marked("token", "Bearer "), file(folder, "key", &key));
    let headers = format!("header_files = {{ Authorization = {token:?} }}\nsecret_file = {key:?}");
    let in_file = |name: &str, path: String| format!("[[notify]]\nname = \"{name}\"\nurl_file = {path:?}\n");
    [
        table("angry", &angry.url, &headers),
        in_file("closed", marked("closed.url", "https://127.0.0.1:1/")),
        in_file("user", file(folder, "user.url", &format!("https://me:{MARK}-user@127.0.0.1:1/"))),
        in_file("scheme", marked("scheme.url", "ftp://127.0.0.1/")),
        table("unsigned", &angry.url, &format!("secret_file = {:?}", marked("odd-key", "no base64 "))),
        table("headless", &angry.url, &format!("header_files = {{ Cookie = {:?} }}", marked("lines", "a\nb"))),
    ]
    .concat()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_secret_stands_anywhere_whatever_fails_and_however_much_is_logged() {
    crate::left_out::long!();
    let folder = TempDir::new().unwrap();
    let angry = Inbox::open().await;
    angry.is_in(Mood::Answers(500));
    let collector_at = free_addresses(1).remove(0);
    let collector = Collector::at(&collector_at).await;
    collector.is_busy_for(2);
    let token = file(folder.path(), "collector", &format!("Bearer {MARK}-collector"));
    let shared = format!(
        "[tracing]\nendpoint = \"http://{collector_at}\"\nheader_files = {{ authorization = {token:?} }}\n{}{}",
        workloads(folder.path()),
        receivers(folder.path(), &angry)
    );
    let (own, keys): (Vec<_>, Vec<_>) =
        ["db-0", "db-1"].map(|name| certificate(folder.path(), name)).into_iter().unzip();
    let tables = own.into_iter().map(|tls| tls + &shared).collect();
    let everything = vec![("ALLCLEAR_LOG", "trace".to_owned())];
    let plan = Cluster::of(&["db-0", "db-1"]).tables(tables).environments(vec![everything; 2]);
    let cluster = plan.keeps_its_leader().start().await;
    let mut calls = client(&cluster.door(0)).await;
    let session = calls.register(hello("dials-in", vec![])).await.unwrap().into_inner().session;
    calls.poll(pb::PollRequest { session: session.clone(), wait_ms: 0, role: 0 }).await.unwrap();
    // The replicas write so much that each may find the other unreachable, and approve a user's event alone.
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0, "source": "Platform" })).await;
    let has_failed = |event: &Event| event.hooks.iter().any(|hook| hook.outcome.as_deref() == Some("failed"));
    let event = cluster.until_event(0, &id, "failed", has_failed).await;
    assert!(format!("{event:?}").contains("*** at ***"), "{event:#?}");
    let leader = cluster.leader(0).await;
    for receiver in ["angry", "closed", "user", "scheme", "unsigned", "headless"] {
        let is_told = || {
            cluster
                .log(leader)
                .lines()
                .any(|line| line.contains("notification not delivered") && line.contains(receiver))
        };
        cluster.until_true(receiver, async || is_told()).await;
    }
    cluster.cloud.cancel(&id).await;
    cluster.until_true("traces", async || collector.requests().len() > 2).await;

    let mut texts = gathered(&cluster, &id).await;
    let bodies = angry.posts().into_iter().map(|post| post.body);
    texts.extend(bodies.map(|body| ("a notice".to_owned(), String::from_utf8(body).unwrap())));
    let traces = collector.requests().into_iter().map(|(_, body)| String::from_utf8_lossy(&body).into_owned());
    texts.extend(traces.map(|body| ("a trace".to_owned(), body)));
    assert!(
        angry.posts().iter().any(|post| post.headers["authorization"].contains(MARK)),
        "it is sent where it belongs"
    );
    // The most verbose output of each crate.
    for (level, target) in [("TRACE", "h2::"), ("TRACE", "hyper_util::"), ("DEBUG", "openraft::")] {
        let [level, target] = [format!("\"level\":\"{level}\""), format!("\"target\":\"{target}")];
        let is_told = |line: &str| line.contains(&level) && line.contains(&target);
        assert!(cluster.log(0).lines().any(is_told), "{target} is not logged");
    }
    let encoded = BASE64_STANDARD.encode(format!("{MARK}-a-key"));
    let token = session.split_once('.').unwrap().0.to_owned();
    let secrets = [MARK.to_owned(), encoded[..8].to_owned(), token].into_iter().chain(keys.concat());
    for secret in secrets {
        for (place, text) in &texts {
            assert!(!text.contains(&secret), "{secret} stands in {place}: {}", around(text, &secret));
        }
    }
    for (place, text) in texts.iter().filter(|(place, _)| place != "check") {
        assert!(!text.contains(SEEN), "an address stands in {place}: {}", around(text, SEEN));
    }
}

fn around<'t>(text: &'t str, secret: &str) -> &'t str {
    text.lines().find(|line| line.contains(secret)).unwrap_or(text)
}

/// All displayed output, and all stored files that are open to more readers than the hook's own user.
async fn gathered(cluster: &Cluster, id: &str) -> Vec<(String, String)> {
    let mut texts = Vec::new();
    for place in 0..2 {
        texts.push((format!("the log of {place}"), cluster.log(place)));
        for path in ["/", "/v1/status", "/v1/events", "/metrics", "/openapi.json", &format!("/v1/events/{id}")] {
            texts.push((path.to_owned(), cluster.page(place, path).await.1));
        }
        for arguments in [vec!["status"], vec!["status", "--json"], vec!["events"], vec!["explain", id]] {
            let (_, out, err) = cluster.says(place, &arguments);
            texts.push((arguments.concat(), out + &err));
        }
        let config = cluster.configuration(place);
        let (code, printed) = program(&["check", "--config", config.to_str().unwrap()]);
        assert_eq!(code, Some(0), "{printed}");
        assert!(printed.contains("SHOWN = \"harmless\"\n") && printed.contains("PLAIN = \"(not shown)\""), "{printed}");
        texts.push(("check".to_owned(), printed));
        for arguments in [&[][..], &["--json"]] {
            let doctor = cluster.asks(place, "doctor", arguments).wait_with_output().unwrap();
            texts.push(("doctor".to_owned(), String::from_utf8([doctor.stdout, doctor.stderr].concat()).unwrap()));
        }
        let data = config.with_extension("data");
        let files = fs::read_dir(data).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
        texts.extend(files.map(|path| (path.display().to_string(), lossy(&path))));
    }
    texts
}

fn lossy(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

#[test]
fn a_configuration_that_is_wrong_is_told_without_its_secrets() {
    let folder = TempDir::new().unwrap();
    let (tls, _) = certificate(folder.path(), "db-0");
    let broken = format!("-----BEGIN PRIVATE KEY-----\n{MARK}\n-----END PRIVATE KEY-----\n");
    file(&folder.path().join("ca/db-0"), "node.key", &broken);
    let of_hook = |line: &str| format!("[[workload]]\nname = \"a\"\n[[workload.hook]]\nphase = \"drain\"\n{line}\n");
    let notify = |lines: &str| format!("[[notify]]\nname = \"a\"\n{lines}\n");
    for (wrong, what) in [
        (tls, "node.key"),
        (of_hook(&format!("http = \"http://me:{MARK}@127.0.0.1/\"")), "contains a user"),
        (of_hook(&format!("command = [\"a\"]\nenv = {{ PASSWORD = [\"{MARK}\"] }}")), "not a text"),
        (of_hook("command = [\"a\"]\nenv = { PASSWORD = 77777777 }"), "not a text"),
        (of_hook(&format!("command = [\"a\"]\nenv = \"PASSWORD={MARK}\"")), "not a table"),
        (of_hook(&format!("command = [\"a\"]\nenv = [\"PASSWORD={MARK}\"]")), "not a table"),
        (
            of_hook(&format!("command = [\"a\"]\nenv = {{ \"PASSWORD={MARK}\" = \"\" }}")),
            "is not the name of a variable",
        ),
        (
            of_hook(&format!("command = [\"a\"]\nenv = {{ \" PASSWORD={MARK}\" = 7 }}")),
            "remove blanks before and after",
        ),
        (of_hook(&format!("command = [\"a\"]\nenv = {{ PASSWORD = {MARK} }}")), "not TOML"),
        (of_hook(&format!("command = [\"a\"]\nenv = {{ PASSWORD = \"{MARK} }}")), "not TOML"),
        (of_hook(&format!("command = [\"a\"]\nenv_files = {{ PASSWORD = \"{MARK}\" }}")), "write the absolute path"),
        (
            of_hook(&format!("command = [\"a\"]\nenv_files = {{ PASSWORD = \"credential:../{MARK}\" }}")),
            "no credential",
        ),
        (of_hook(&format!("command = [\"a\"]\nenv_files = \"{MARK}\"")), "not a table"),
        (of_hook(&format!("http = \"http://127.0.0.1/\"\nbearer_file = \"{MARK}\"")), "write the absolute path"),
        (
            of_hook(&format!("http = \"http://127.0.0.1/\"\nusername = \"me\"\npassword_file = \"{MARK}\"")),
            "absolute path",
        ),
        (
            of_hook(&format!("http = \"http://127.0.0.1/\"\nusername = \"me:{MARK}\"\npassword_file = \"/p\"")),
            "a colon",
        ),
        (of_hook("http = \"http://127.0.0.1/\"\nbearer_file = 77777777"), "write the path in quotes"),
        (of_hook(&format!("http = \"htp://127.0.0.1/?token={MARK}\"")), "has to begin with"),
        (of_hook(&format!("command = [\"a\"]\nconfirm = \"http://me:{MARK}@127.0.0.1/\"")), "is an address"),
        (notify(&format!("url_file = \"{MARK}\"")), "write the absolute path"),
        (notify(&format!("url = \"https://a/\"\nsecret_file = \"{MARK}\"")), "write the absolute path"),
        (notify(&format!("url = \"https://a/\"\nheader_files = {{ A = \"{MARK}\" }}")), "write the absolute path"),
        (notify(&format!("url = \"https://a/\"\nheader_files = \"{MARK}\"")), "not a table"),
        (notify(&format!("url = \"https://a/\"\nheaders = \"A: {MARK}\"")), "not a table"),
        (notify("url = \"https://a/\"\nheaders = { X-Key = 77777777 }"), "not a text"),
        (format!("[tracing]\nendpoint = \"http://127.0.0.1/?token={MARK}\""), "contains a ?"),
        (format!("[metadata]\nendpoint = \"http://me:{MARK}@127.0.0.1\""), "contains a user"),
        (notify(&format!("url = \"https://me:{MARK}@a.example/\"")), "contains a user"),
        (notify(&format!("url = \"https://a/\"\nheaders = {{ Authorization = \"Bearer {MARK}\" }}")), "is a secret"),
        (format!("[tracing]\nendpoint = \"http://me:{MARK}@127.0.0.1\""), "contains a user"),
    ] {
        let toml = "[cluster]\nname = \"tests\"\n\
                    [replica]\nname = \"db-0\"\ndata_dir = \"/var/lib/allclear\"\n";
        let config = file(folder.path(), "wrong.toml", &format!("{toml}{wrong}"));
        let (code, told) = program(&["check", "--config", &config]);
        assert!(code == Some(2) && told.contains(what), "{wrong}: {told}");
        assert!(!told.contains(MARK) && !told.contains("77777777"), "{told}");
    }
}
