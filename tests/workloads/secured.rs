//! Hooks and roles over HTTPS, with logins and client certificates: whom they speak to, what they show, and that secrets
//! are read anew each time and appear nowhere else.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use allclear::http_client::{Identity, Login, Options};
use allclear::machine::workload::Role;
use allclear::workloads::{Command, Ended, HttpHook, RoleSource, Surroundings};
use tempfile::TempDir;

use crate::bench::{Bench, end, task};
use crate::certificates::Authority;
use crate::server::{Server, answer};

const PASSWORD: &str = "open sesame";

/// An authority, and the files of whoever trusts it.
struct Pki {
    authority: Authority,
    folder: TempDir,
}

impl Pki {
    fn new() -> Self {
        Self { authority: Authority::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn trusted(&self) -> Options {
        Options { ca: Some(self.authority.file(self.folder.path(), "ca.pem")), ..Options::default() }
    }

    fn identity(&self) -> Identity {
        let (certificate, key) = self.authority.issue(self.folder.path(), "client");
        Identity { certificate, key }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    fn basic(&self, password: &str) -> Login {
        Login::Basic { username: "db".to_owned(), password_file: self.file("password", password) }
    }
}

async fn outcome(bench: &Bench, hook: &HttpHook) -> Ended {
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &Command { argv: hook.command(), ..bench.shell("") });
    end(&mut reports).await
}

async fn done_with(server: &Server, options: &Options) -> Ended {
    let hook = HttpHook { options: options.clone(), ..HttpHook::at(&server.url("/drain")) };
    outcome(&Bench::new(), &hook).await
}

#[tokio::test]
async fn a_server_is_asked_that_a_trusted_authority_vouches_for_and_no_other() {
    let (known, strange) = (Pki::new(), Pki::new());
    let server = Server::start_with(Some(known.authority.server("127.0.0.1")), |_| answer(200, &[], "")).await;
    for untrusted in [strange.trusted(), Options::default()] {
        let ended = done_with(&server, &untrusted).await;
        assert!(matches!(&ended, Ended::Blocked(why) if why.contains("nothing was sent")), "{ended}");
    }
    let elsewhere = Server::start_with(Some(known.authority.server("10.0.0.4")), |_| answer(200, &[], "")).await;
    assert!(matches!(done_with(&elsewhere, &known.trusted()).await, Ended::Blocked(_)));
    assert_eq!(server.requests("POST").len() + elsewhere.requests("POST").len(), 0);
    assert_eq!(done_with(&server, &known.trusted()).await, Ended::Done);
}

#[tokio::test]
async fn a_certificate_is_shown_to_a_server_that_wants_one() {
    let pki = Pki::new();
    let server = Server::start_with(Some(pki.authority.strict_server("127.0.0.1")), |_| answer(200, &[], "")).await;
    assert!(matches!(done_with(&server, &pki.trusted()).await, Ended::Blocked(_) | Ended::Unknown(_)));
    assert_eq!(server.requests("POST").len(), 0);
    let known = Options { identity: Some(pki.identity()), ..pki.trusted() };
    assert_eq!(done_with(&server, &known).await, Ended::Done);
}

#[tokio::test]
async fn a_secret_is_read_at_each_attempt_and_said_to_the_server_alone() {
    let pki = Pki::new();
    let server = Server::start_with(Some(pki.authority.server("127.0.0.1")), |_| answer(500, &[], "no")).await;
    let bench = Bench::new();
    let options = Options { login: Some(pki.basic(PASSWORD)), ..pki.trusted() };
    let hook = HttpHook { options, ..HttpHook::at(&server.url("/drain")) };
    let ended = outcome(&bench, &hook).await;
    pki.basic("renewed");
    outcome(&Bench::new(), &hook).await;
    let told: Vec<_> = server.requests("POST").iter().map(|post| post.headers["authorization"].clone()).collect();
    assert_eq!(told, ["Basic ZGI6b3BlbiBzZXNhbWU=", "Basic ZGI6cmVuZXdlZA=="]);

    assert!(!hook.command().join(" ").contains(PASSWORD) && !ended.to_string().contains(PASSWORD));
    let mut seen = 0;
    for file in files(bench.folder.path()) {
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(![PASSWORD, "ZGI6b3BlbiBzZXNhbWU="].iter().any(|secret| text.contains(secret)), "{}", file.display());
        seen += 1;
    }
    assert!(seen > 2, "the attempt has left its files");
}

#[tokio::test]
async fn a_token_goes_along_where_that_is_the_login() {
    let pki = Pki::new();
    let server = Server::start(|_| answer(200, &[], "")).await;
    let login = Some(Login::Bearer { token_file: pki.file("token", "abc\n") });
    assert_eq!(done_with(&server, &Options { login, ..Options::default() }).await, Ended::Done);
    assert_eq!(server.requests("POST")[0].headers["authorization"], "Bearer abc");
}

/// They may be there a moment later: that is how files are replaced.
#[tokio::test]
async fn files_that_cannot_be_used_are_waited_for_and_named() {
    let pki = Pki::new();
    let server = Server::start(|_| answer(200, &[], "")).await;
    let missing = Login::Basic { username: "db".to_owned(), password_file: "/nowhere/password".into() };
    for (options, name) in [
        (Options { login: Some(missing), ..Options::default() }, "/nowhere/password"),
        (Options { login: Some(pki.basic("")), ..Options::default() }, "password: is empty"),
        (Options { ca: Some(pki.file("broken.pem", "no certificate")), ..Options::default() }, "broken.pem"),
    ] {
        let ended = done_with(&server, &options).await;
        assert!(matches!(&ended, Ended::Blocked(why) if why.contains(name)), "{ended}");
    }
    assert_eq!(server.requests("POST").len(), 0);
}

#[tokio::test]
async fn a_role_is_asked_for_in_the_same_way() {
    let pki = Pki::new();
    let server = Server::start_with(Some(pki.authority.strict_server("127.0.0.1")), |request| {
        let is_known = request.headers.get("authorization").is_some_and(|login| login == "Basic ZGI6b3BlbiBzZXNhbWU=");
        if is_known { answer(200, &[], "{\"role\": \"master\"}") } else { answer(401, &[], "who are you") }
    })
    .await;
    let known = Options { identity: Some(pki.identity()), ..pki.trusted() };
    let ask = async |options: Options| {
        let source = RoleSource::Http { url: server.url("/patroni"), options };
        source.ask(&BTreeMap::new(), &Surroundings::default()).await
    };
    assert_eq!(ask(known.clone()).await, Err("it answered 401".to_owned()));
    assert_eq!(ask(Options { login: Some(pki.basic(PASSWORD)), ..known }).await, Ok(Role::Primary));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
