//! Hooks and roles over HTTPS, with logins and client certificates: the accepted servers, the presented credentials,
//! and secrets read anew each time and present nowhere else.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use allclear::core::model::workload::Role;
use allclear::hooks::{HookCommand, HookEnvironment, HookOutcome, HttpHook, RoleSource};
use allclear::http_client::{ClientCertificate, Login, Options};
use tempfile::TempDir;

use crate::workloads::bench::{ATTEMPT, Bench, end, next, task};
use crate::workloads::certificates::Authority;
use crate::workloads::server::{Server, answer};

const PASSWORD: &str = "open sesame";

/// An authority, and the files of a client that trusts the authority.
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

    fn identity(&self) -> ClientCertificate {
        let (certificate, key) = self.authority.issue(self.folder.path(), "client");
        ClientCertificate { certificate, key }
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        path
    }

    fn basic(&self, password: &str) -> Login {
        Login::Basic { username: "db".to_owned(), password_file: self.file("password", password) }
    }
}

async fn outcome(bench: &Bench, hook: &HttpHook) -> HookOutcome {
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &HookCommand { argv: hook.command(), ..bench.shell("") });
    end(&mut reports).await
}

async fn done_with(server: &Server, options: &Options) -> HookOutcome {
    let hook = HttpHook { options: options.clone(), ..HttpHook::at(&server.url("/drain")) };
    outcome(&Bench::new(), &hook).await
}

#[tokio::test]
async fn a_server_is_asked_that_a_trusted_authority_vouches_for_and_no_other() {
    let (known, strange) = (Pki::new(), Pki::new());
    let server = Server::start_with(Some(known.authority.server("127.0.0.1")), |_| answer(200, &[], "")).await;
    for untrusted in [strange.trusted(), Options::default()] {
        let ended = done_with(&server, &untrusted).await;
        assert!(matches!(&ended, HookOutcome::Blocked(why) if why.contains("nothing was sent")), "{ended}");
    }
    let elsewhere = Server::start_with(Some(known.authority.server("10.0.0.4")), |_| answer(200, &[], "")).await;
    assert!(matches!(done_with(&elsewhere, &known.trusted()).await, HookOutcome::Blocked(_)));
    assert_eq!(server.requests("POST").len() + elsewhere.requests("POST").len(), 0);
    assert_eq!(done_with(&server, &known.trusted()).await, HookOutcome::Done);
}

#[tokio::test]
async fn a_certificate_is_shown_to_a_server_that_wants_one() {
    let pki = Pki::new();
    let server = Server::start_with(Some(pki.authority.strict_server("127.0.0.1")), |_| answer(200, &[], "")).await;
    assert!(matches!(done_with(&server, &pki.trusted()).await, HookOutcome::Blocked(_) | HookOutcome::Unknown(_)));
    assert_eq!(server.requests("POST").len(), 0);
    let known = Options { identity: Some(pki.identity()), ..pki.trusted() };
    assert_eq!(done_with(&server, &known).await, HookOutcome::Done);
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

/// The server repeats every part of the caller's login, in answers of each kind, and exactly where answers are cut
/// short.
#[tokio::test]
async fn what_a_server_repeats_of_the_login_is_neither_told_nor_kept() {
    const TOKEN: &str = "t0ken-of-the-orders";
    let pki = Pki::new();
    let server = Server::start(|request| {
        let login = &request.headers["authorization"];
        let plain = if login.starts_with("Basic") { PASSWORD } else { TOKEN };
        let long = format!("{}{login}", "x".repeat(280));
        match (request.method.as_str(), request.path.split('?').next().unwrap()) {
            ("POST", "/reason") => answer(500, &[], &format!("{{\"reason\": \"{login} at {}\"}}", request.path)),
            ("POST", "/line") => answer(401, &[], &format!("no {login}, {plain}\n")),
            ("POST", "/long") => answer(409, &[], &long),
            ("POST", "/outcome") => answer(200, &[], &format!("{{\"outcome\": \"{login}\"}}")),
            ("POST", "/elsewhere") => answer(202, &[("Location", &format!("http://127.0.0.9/{plain}"))], ""),
            ("POST", _) => answer(202, &[("Location", "/job")], ""),
            _ => answer(202, &[], &format!("{{\"progress\": \"for {login} {plain}\"}}")),
        }
    })
    .await;
    let logins = [pki.basic(PASSWORD), Login::Bearer { token_file: pki.file("token", TOKEN) }];
    for login in logins {
        for path in ["/reason?key=s33n-in-query", "/line", "/long", "/outcome", "/elsewhere", "/progress"] {
            let bench = Bench::new();
            let options = Options { login: Some(login.clone()), ..Options::default() };
            let hook = HttpHook { options, ..HttpHook::at(&server.url(path)) };
            let (runner, mut reports) = bench.open();
            runner.run(&task(), &HookCommand { argv: hook.command(), ..bench.shell("") });
            let mut texts = vec![format!("{:?}", next(&mut reports).await)];
            let is_progress = texts[0].starts_with("Progress");
            assert_eq!(is_progress, path == "/progress", "{texts:?}");
            if is_progress {
                runner.cancel(ATTEMPT);
                texts.push(end(&mut reports).await.to_string());
            }
            for file in files(&bench.attempt()) {
                if !file.ends_with("request.json") {
                    texts.push(String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned());
                }
            }
            assert!(texts.iter().any(|text| text.contains("***")), "{path}: {texts:?}");
            for secret in ["sesame", "ZGI6b3Bl", "t0ken-of", "s33n"] {
                assert!(texts.iter().all(|text| !text.contains(secret)), "{path}: {secret} in {texts:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_token_goes_along_where_that_is_the_login() {
    let pki = Pki::new();
    let server = Server::start(|_| answer(200, &[], "")).await;
    let login = Some(Login::Bearer { token_file: pki.file("token", "abc\n") });
    assert_eq!(done_with(&server, &Options { login, ..Options::default() }).await, HookOutcome::Done);
    assert_eq!(server.requests("POST")[0].headers["authorization"], "Bearer abc");
}

/// The files may exist a moment later: this is how files are replaced.
#[tokio::test]
async fn files_that_cannot_be_used_are_waited_for_and_named() {
    let pki = Pki::new();
    let server = Server::start(|_| answer(200, &[], "")).await;
    let missing = Login::Basic { username: "db".to_owned(), password_file: "/nowhere/password".into() };
    let open = Login::Bearer { token_file: pki.file("open", "token") };
    fs::set_permissions(pki.folder.path().join("open"), Permissions::from_mode(0o644)).unwrap();
    for (options, name) in [
        (Options { login: Some(missing), ..Options::default() }, "/nowhere/password"),
        (Options { login: Some(pki.basic("")), ..Options::default() }, "password: is empty"),
        (Options { ca: Some(pki.file("broken.pem", "no certificate")), ..Options::default() }, "broken.pem"),
        (Options { login: Some(open), ..Options::default() }, "open can be read by every user"),
    ] {
        let ended = done_with(&server, &options).await;
        assert!(matches!(&ended, HookOutcome::Blocked(why) if why.contains(name)), "{ended}");
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
        source.ask(&BTreeMap::new(), &HookEnvironment::default(), Duration::from_secs(10)).await
    };
    assert_eq!(ask(known.clone()).await, Err("the server answered 401".to_owned()));
    assert_eq!(ask(Options { login: Some(pki.basic(PASSWORD)), ..known }).await, Ok(Role::Primary));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
