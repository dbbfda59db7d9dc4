//! `allclear doctor`: everything in order, and each possible fault, with real processes on loopback. Every
//! configuration names the fake cloud: the usual address on a VM is never contacted here.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use tokio::net::TcpSocket;

use super::{allclear, free_addresses, program, stderr, stdout, written};

/// Killed when the test is over, however the test ends.
pub(super) struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A replica that is not started, beside a fake cloud of two VMs, db-0 and db-1.
pub(super) struct Bench {
    pub(super) folder: TempDir,
    pub(super) certificates: TempDir,
    pub(super) endpoint: String,
    _cloud: Running,
    _held: [TcpSocket; 3],
    pub(super) addresses: [SocketAddr; 3],
}

impl Bench {
    pub(super) fn new() -> Self {
        let mut command = Command::new(program());
        command.args(["fake-cloud", "--vms", "db-0,db-1"]).env_clear().stdout(Stdio::piped());
        let mut cloud = command.spawn().unwrap();
        let lines = BufReader::new(cloud.stdout.take().unwrap()).lines().map(Result::unwrap);
        let endpoint = lines.take(2).find_map(|line| line.strip_prefix("db-0 ").map(str::to_owned)).unwrap();
        let held = free_addresses();
        let addresses = held.each_ref().map(|(_, address)| *address);
        let (folder, certificates) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let dir = certificates.path().to_str().unwrap();
        for made in [["init", "--cluster", "tests"], ["issue", "--replica", "db-0"], ["issue", "--replica", "db-1"]] {
            let output = allclear(&[&["certs"], &made[..], &["--dir", dir]].concat(), &[]);
            assert!(output.status.success(), "{}", stderr(&output));
        }
        Self {
            folder,
            certificates,
            endpoint,
            _cloud: Running(cloud),
            _held: held.map(|(socket, _)| socket),
            addresses,
        }
    }

    pub(super) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    pub(super) fn text(&self) -> String {
        let ([cluster, status, _], endpoint) = (self.addresses, &self.endpoint);
        let tls = |file: &str| self.certificates.path().join("db-0").join(file).display().to_string();
        let (data, operator, workloads) = (self.path("data"), self.path("operator"), self.path("workloads"));
        format!(
            "[replica]\nname = \"db-0\"\ndata_dir = {data:?}\n[cluster]\nname = \"tests\"\nlisten = \"{cluster}\"\n\
             [cluster.tls]\ncert = {:?}\nkey = {:?}\nca = {:?}\n\
             [metadata]\nendpoint = {endpoint:?}\n[status]\nlisten = \"{status}\"\n\
             [operator]\nsocket = {operator:?}\n[workloads]\nsocket = {workloads:?}\n",
            tls("node.pem"),
            tls("node.key"),
            tls("ca.pem"),
        )
    }

    /// The configuration of a cluster of one, without a port for other replicas and without certificates.
    pub(super) fn alone(&self) -> String {
        let whole = self.text();
        let (before, rest) = whole.split_once("listen = ").unwrap();
        format!("{before}[metadata]{}", rest.split_once("[metadata]").unwrap().1)
    }

    /// The configuration with another replica that does not run.
    pub(super) fn pair(&self) -> String {
        let [own, _, other] = self.addresses;
        let listen = format!("listen = \"{own}\"\n");
        self.text().replace(&listen, &format!("{listen}replicas = {{ db-0 = \"{own}\", db-1 = \"{other}\" }}\n"))
    }

    pub(super) fn asked(&self, text: &str) -> (Option<i32>, Vec<Value>) {
        let path = written(self.folder.path(), text);
        let output = allclear(&["doctor", "--config", &path, "--json"], &[("PATH", "/usr/bin:/bin")]);
        assert!(stderr(&output).starts_with("reading the scheduled events at"), "{}", stderr(&output));
        let report: Value = serde_json::from_str(stdout(&output)).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        assert_eq!(report["ok"], output.status.code() == Some(0), "{report:#}");
        (output.status.code(), findings)
    }

    /// Asserts that `check` fails, and that no other check fails.
    pub(super) fn fails(&self, text: &str, check: &str, what: &str) {
        let (code, findings) = self.asked(text);
        let failed: Vec<&Value> = findings.iter().filter(|finding| finding["verdict"] == "fail").collect();
        assert_eq!(code, Some(1), "{findings:#?}");
        let is_it = |finding: &&Value| finding["check"] == check && finding["what"].as_str().unwrap().contains(what);
        assert!(failed.iter().all(is_it) && failed.len() == 1, "{check}: {what}: {failed:#?}");
        assert!(failed[0]["advice"].is_string(), "{failed:#?}");
    }

    fn warns(&self, text: &str, what: &str) {
        let (code, findings) = self.asked(text);
        let is_it = |finding: &Value| finding["verdict"] == "warn" && finding["what"].as_str().unwrap().contains(what);
        assert!(code == Some(0) && findings.iter().any(is_it), "{what}: {findings:#?}");
    }

    pub(super) fn run(&self, text: &str) -> Running {
        let path = written(self.folder.path(), text);
        let mut command = Command::new(program());
        command.args(["run", "--config", &path]).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
        Running(command.spawn().unwrap())
    }
}

fn all_ok(findings: &[Value]) -> bool {
    findings.iter().all(|finding| finding["verdict"] == "ok")
}

pub(super) fn any(findings: &[Value], what: &str) -> bool {
    findings.iter().any(|finding| finding["what"].as_str().unwrap().contains(what))
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.collect()
}

#[test]
fn before_a_replica_has_ever_run_everything_is_tried_and_nothing_is_left_behind() {
    let bench = Bench::new();
    let (code, findings) = bench.asked(&bench.text());
    assert!(code == Some(0) && all_ok(&findings), "{findings:#?}");
    for what in [
        "api-version 2020-07-01",
        "as the instance metadata calls this VM",
        "Microsoft.Compute/virtualMachines/db-0 --api-version 2025-04-01 --query properties.scheduledEventsPolicy",
        "can be made in",
        "is free",
        "MiB",
    ] {
        assert!(any(&findings, what), "{what}: {findings:#?}");
    }
    assert_eq!(names(bench.folder.path()), ["allclear.toml"]);
    std::fs::create_dir(bench.path("data")).unwrap();
    let (code, findings) = bench.asked(&bench.text());
    assert!(code == Some(0) && any(&findings, "an fsync takes"), "{findings:#?}");
    assert_eq!(names(&bench.folder.path().join("data")), [""; 0]);
    let path = written(bench.folder.path(), &bench.text());
    let output = allclear(&["doctor", "--config", &path], &[("PATH", "/usr/bin:/bin")]);
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert!(lines[0].starts_with("ok  configuration"), "{lines:#?}");
    assert_eq!(lines.last(), Some(&"nothing failed: 0 failures, 0 warnings"));
}

#[test]
fn beside_a_running_replica_its_ports_and_sockets_are_its_own_and_its_peer_is_met() {
    let bench = Bench::new();
    let text = bench.pair();
    let _first = bench.run(&text);
    let other = tempfile::tempdir().unwrap();
    let [own, _, peer] = bench.addresses;
    let [(_held, status)] = free_addresses();
    let of_peer = text
        .replace("name = \"db-0\"", "name = \"db-1\"")
        .replace("/db-0/", "/db-1/")
        .replace(&format!("listen = \"{own}\""), &format!("listen = \"{peer}\""))
        .replace(&bench.addresses[1].to_string(), &status.to_string())
        .replace(&bench.folder.path().display().to_string(), &other.path().display().to_string());
    let of_peer_path = written(other.path(), &of_peer);
    let mut command = Command::new(program());
    command.args(["run", "--config", &of_peer_path]).env_clear().stdout(Stdio::null()).stderr(Stdio::null());
    let _second = Running(command.spawn().unwrap());
    let operator = bench.path("operator");
    let is_up = || {
        let told = allclear(&["status", "--json", "--endpoint", &operator], &[]);
        stdout(&told).contains("\"quorum\":true")
    };
    assert!(super::comes_true(is_up), "no cluster was formed");
    let (code, findings) = bench.asked(&text);
    assert!(code == Some(0), "{findings:#?}");
    assert_eq!(
        findings.iter().filter(|it| it["what"].as_str().unwrap().contains("this replica, which runs")).count(),
        4
    );
    assert!(
        any(&findings, &format!("db-1 answers at {peer}")) && any(&findings, "the clock of db-1 is"),
        "{findings:#?}"
    );
    let stranger = text.replace("name = \"tests\"", "name = \"others\"");
    let (code, findings) = bench.asked(&stranger);
    assert!(code == Some(1) && any(&findings, "is for another cluster"), "{findings:#?}");
}

#[test]
fn a_peer_that_does_not_answer_and_one_that_is_no_replica_are_told() {
    let bench = Bench::new();
    bench.warns(&bench.pair(), "nothing listens for db-1");
    let held = TcpListener::bind(bench.addresses[2]).unwrap();
    bench.fails(&bench.pair(), "peer", "no answer within 500ms");
    drop(held);
}

#[test]
fn a_data_directory_that_cannot_be_used_is_told() {
    let bench = Bench::new();
    std::fs::write(bench.path("data"), "a file").unwrap();
    bench.fails(&bench.text(), "disk", "is no directory");
    let impossible = bench.text().replace(&bench.path("data"), &bench.path("data/below"));
    bench.fails(&impossible, "disk", "Not a directory");
    std::fs::remove_file(bench.path("data")).unwrap();
    std::fs::create_dir(bench.path("data")).unwrap();
    if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(bench.path("data"), Some(65534), None).unwrap();
        bench.fails(&bench.text(), "disk", "belongs to uid 65534");
    }
}

/// A table of file systems that names a mount point above the data directory, in a mount namespace of its own.
#[test]
fn a_data_directory_whose_disk_is_not_mounted_is_told() {
    if !crate::left_out::is_root() {
        return;
    }
    let bench = Bench::new();
    std::fs::create_dir(bench.path("disk")).unwrap();
    let text = bench.text().replace(&bench.path("data"), &bench.path("disk/data"));
    let (config, table) = (written(bench.folder.path(), &text), bench.path("fstab"));
    std::fs::write(&table, format!("/dev/none {} ext4 nofail 0 2\n", bench.path("disk"))).unwrap();
    let doctor = format!("exec {} doctor --config {config}", program());
    let mounted = format!("mount --bind {table} /etc/fstab");
    let disk = format!("mount -t tmpfs none {}", bench.path("disk"));
    let asked = |script: &str| {
        let output = Command::new("unshare").args(["--mount", "sh", "-c", script]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    if asked(&mounted).0 != Some(0) {
        return crate::left_out::is_forbidden("mount namespaces");
    }
    let (code, told) = asked(&format!("{mounted} && {doctor}"));
    let missing = format!("mount it: `mount {}`", bench.path("disk"));
    assert!(code == Some(1) && told.contains("nothing is mounted there") && told.contains(&missing), "{told}");
    let (code, told) = asked(&format!("{mounted} && {disk} && {doctor}"));
    assert!(code == Some(0) && !told.contains("mounted"), "{told}");
}

#[test]
fn ports_and_sockets_of_others_are_told() {
    let bench = Bench::new();
    let held = TcpListener::bind(bench.addresses[1]).unwrap();
    bench.fails(&bench.text(), "port", "status.listen");
    drop(held);
    let held = TcpListener::bind(bench.addresses[0]).unwrap();
    bench.fails(&bench.text(), "port", "cluster.listen");
    drop(held);
    let elsewhere = bench.text().replace(&bench.addresses[1].to_string(), "192.0.2.1:7421");
    bench.fails(&elsewhere, "port", "does not have that address");
    let held = std::os::unix::net::UnixListener::bind(bench.path("operator")).unwrap();
    bench.fails(&bench.text(), "socket", "served by another process");
    drop(held);
    let (code, findings) = bench.asked(&bench.text());
    assert!(code == Some(0) && any(&findings, "was left behind"), "{findings:#?}");
    std::fs::write(bench.path("workloads"), "a file").unwrap();
    bench.fails(&bench.text(), "socket", "is no socket");
}

#[test]
fn what_a_check_of_a_workload_finds_is_told_line_by_line() {
    let bench = Bench::new();
    let check = |script: &str| {
        let hook = format!("[[workload.hook]]\nphase = \"check\"\ncommand = [\"/bin/sh\", \"-c\", {script:?}]\n");
        format!("{}[[workload]]\nname = \"w\"\n{hook}", bench.text())
    };
    let (code, findings) = bench.asked(&check("test \"$ALLCLEAR_MODE$ALLCLEAR_VM\" = dry_rundb-0"));
    assert!(code == Some(0) && any(&findings, "db-0/w/check: the check found no fault"), "{findings:#?}");
    bench.fails(&check("echo no rights >&2; exit 1"), "database", "db-0/w/check: no rights");
    let (_, findings) =
        bench.asked(&check("echo no rights >&2; echo no disk >&2; echo no rights, no disk >&2; exit 1"));
    let failed: Vec<_> = findings.iter().filter(|finding| finding["verdict"] == "fail").collect();
    assert_eq!(failed.len(), 2, "{failed:#?}");
    assert!(any(&findings, "check: no rights") && any(&findings, "check: no disk"), "{failed:#?}");
    bench.fails(&check("exit 3"), "database", "db-0/w/check: failed");
    let (code, findings) = bench.asked(&check("echo progress: events stay disabled; echo progress: a slot is unused"));
    let doubts: Vec<_> = findings.iter().filter(|finding| finding["check"] == "database").collect();
    assert!(code == Some(0) && doubts.iter().all(|doubt| doubt["verdict"] == "warn"), "{findings:#?}");
    assert!(
        any(&findings, "w/check: events stay disabled") && any(&findings, "w/check: a slot is unused"),
        "{doubts:#?}"
    );
}

#[test]
fn settings_that_are_valid_and_probably_not_intended_are_told() {
    let bench = Bench::new();
    let workload = |lines: &str| {
        let hook = "[[workload.hook]]\nphase = \"drain\"\ncommand = [\"true\"]\n";
        format!("{}[[workload]]\nname = \"w\"\n{lines}\n{hook}", bench.pair())
    };
    // The other of the pair does not run, so `doctor` fails; the doubt is a warning all the same.
    for (text, expected) in [
        (workload("after = [\"poler\"]"), "`after` of the workload w names poler"),
        (
            workload(
                "[[workload.hook]]\nphase = \"checkpoint\"\ncommand = [\"true\"]\ntimeout = \"5m\"\n\
                 [[workload.hook]]\nphase = \"failover\"\ncommand = [\"true\"]\ntimeout = \"60s\"",
            ),
            "the checkpoint and the failover of the workload w may take 6m together, and `user_budget` is 2m",
        ),
        (
            format!("{}[[group]]\nname = \"g\"\nmax_unavailable = 2\n", workload("group = \"g\"")),
            "`max_unavailable` of the group g is 2",
        ),
    ] {
        let (_, findings) = bench.asked(&text);
        let is_it = |finding: &Value| finding["what"].as_str().unwrap().starts_with(expected);
        let found =
            findings.iter().find(|finding| is_it(finding)).unwrap_or_else(|| panic!("{expected}: {findings:#?}"));
        assert!(found["verdict"] == "warn" && found["advice"].is_string(), "{found:#}");
    }
}

#[test]
fn hooks_that_cannot_be_run_are_told() {
    let bench = Bench::new();
    let hook = |line: &str| {
        format!("{}[[workload]]\nname = \"w\"\n[[workload.hook]]\nphase = \"drain\"\n{line}\n", bench.text())
    };
    let script = bench.path("hook.sh");
    std::fs::write(&script, "#!/bin/sh\n").unwrap();
    let mode = |mode| std::fs::set_permissions(&script, std::fs::Permissions::from_mode(mode)).unwrap();
    mode(0o644);
    bench.fails(&hook(&format!("command = [{script:?}]")), "hook", "may not be run");
    mode(0o755);
    let (code, findings) = bench.asked(&hook(&format!("command = [{script:?}]")));
    assert!(code == Some(0) && any(&findings, "can be run"), "{findings:#?}");
    bench.fails(&hook("command = [\"/nowhere/hook\"]"), "hook", "/nowhere/hook of w.drain does not exist");
    bench.fails(&hook("command = [\"no-such-program-here\"]"), "hook", "is not in the PATH /usr/bin:/bin");
    bench.fails(&hook("command = [\"true\"]\nuser = \"nobody-knows\""), "hook", "nobody-knows of hooks does not exist");
}

#[test]
fn what_hooks_over_http_need_is_tried_and_nothing_is_sent() {
    let bench = Bench::new();
    let hook = |way: &str| {
        format!("{}[[workload]]\nname = \"w\"\n[[workload.hook]]\nphase = \"drain\"\n{way}\n", bench.text())
    };
    let file = |name: &str, mode: u32| {
        let path = bench.path(name);
        std::fs::write(&path, "open sesame").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let https = format!("http = \"https://{}/drain\"", listener.local_addr().unwrap());
    let with_password = |path: &str| format!("{https}\nusername = \"me\"\npassword_file = {path:?}");
    let good = file("good", 0o600);
    let (_, findings) = bench.asked(&hook(&with_password(&good)));
    assert!(any(&findings, "w.drain: address, secrets and certificates can be used"), "{findings:#?}");
    bench.fails(&hook(&with_password("/nowhere/password")), "http", "w.drain: /nowhere/password: No such file");
    bench.fails(&hook(&format!("{https}\nca = {good:?}")), "http", &format!("w.drain: {good}: "));
    bench.fails(&hook(&with_password(&file("open", 0o604))), "http", "open can be read by every user");
    let members = "http = \"http://127.0.0.1:1\"\nadapter = \"patroni\"\nmembers = { a = \"DB-0\", b = \"db-7\" }";
    let patroni = hook(members).replace("phase = \"drain\"", "phase = \"restore\"");
    let pair = bench.pair();
    bench.warns(&patroni.replace(&bench.text(), &pair), "has b on db-7, which is not among");
    let role = format!("{}[[workload]]\nname = \"w\"\nrole = {{ {https}, ca = \"/nowhere/ca\" }}\n", bench.text());
    bench.fails(&role, "http", "w.role: /nowhere/ca");
    if nix::unistd::geteuid().is_root() {
        let way = format!("{}\nuser = \"nobody\"", with_password(&good));
        bench.fails(&hook(&way), "http", "may not be read by nobody");
    }
    assert_eq!(listener.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody dialled");
}

#[test]
fn files_of_variables_are_tried_and_so_is_the_configuration_that_holds_others() {
    let bench = Bench::new();
    let hook = |keys: &str| {
        let hook = "[[workload]]\nname = \"w\"\n[[workload.hook]]\nphase = \"drain\"\ncommand = [\"true\"]";
        format!("{}{hook}\n{keys}\n", bench.text())
    };
    let file = |text: &str, mode: u32| {
        let path = bench.path("secret");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        hook(&format!("env_files = {{ TOKEN = {path:?} }}"))
    };
    let (code, findings) = bench.asked(&file("m4rk-token", 0o600));
    assert!(code == Some(0) && any(&findings, "TOKEN of w.drain: ") && !any(&findings, "m4rk"), "{findings:#?}");
    bench.fails(&file("m4rk-token", 0o644), "hook", "TOKEN of w.drain: ");
    bench.warns(&file("7q8", 0o600), "too short to be cut out");
    bench.fails(&hook("env_files = { TOKEN = \"/nowhere/token\" }"), "hook", "/nowhere/token: No such file");
    bench.fails(&hook("env = { TOKEN = \"m4rk-token\" }"), "configuration", "contains secrets: chmod o= it");
    let (code, findings) = bench.asked(&hook("env = { PORT = \"5433\" }\nenv_shown = [\"PORT\"]"));
    assert!(code == Some(0), "{findings:#?}");
}

#[test]
fn what_a_collector_of_traces_says_is_told_and_fails_nothing() {
    let bench = Bench::new();
    let collector = TcpListener::bind("127.0.0.3:0").unwrap();
    let address = collector.local_addr().unwrap();
    let text = bench.text() + &format!("[tracing]\nendpoint = \"http://{address}\"\n");
    let answers = ["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 401 No\r\nContent-Length: 3\r\n\r\nwho"];
    let serving = std::thread::spawn(move || {
        for answer in answers {
            let (mut met, _) = collector.accept().unwrap();
            let head = BufReader::new(met.try_clone().unwrap()).lines().map(Result::unwrap);
            let head: Vec<_> = head.take_while(|line| !line.is_empty()).collect();
            assert!(head[0].starts_with("POST /v1/traces ") && head.contains(&"content-length: 0".into()), "{head:#?}");
            met.write_all(answer.as_bytes()).unwrap();
        }
    });
    let (code, findings) = bench.asked(&text);
    assert!(code == Some(0) && all_ok(&findings) && any(&findings, "accepts traces"), "{findings:#?}");
    bench.warns(&text, "the collector answered 401: who");
    serving.join().unwrap();
    bench.warns(&text, "Connection refused");
    bench.warns(&(text + "ca = \"/nowhere/ca.pem\"\n"), "/nowhere/ca.pem");
}

#[test]
fn a_wrong_configuration_is_told_as_by_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), "policy.margn = \"1s\"\n[metadata]\nendpoint = \"http://127.0.0.1:1\"\n");
    let output = allclear(&["doctor", "--config", &path], &[]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), ""));
    assert!(stderr(&output).contains("did you mean `margin`"), "{}", stderr(&output));
}

#[test]
fn a_replica_under_another_name_than_its_vm_says_so_while_it_runs() {
    let bench = Bench::new();
    let misnamed = bench.alone().replace("name = \"db-0\"", "name = \"db-9\"");
    let _running = bench.run(&misnamed);
    let socket = bench.path("operator");
    let deadline = std::time::Instant::now() + std::time::Duration::from_mins(2);
    loop {
        let status = allclear(&["status", "--endpoint", &socket], &[]);
        if stdout(&status).contains("Azure calls this VM db-0") {
            break;
        }
        assert!(std::time::Instant::now() < deadline, "{}{}", stdout(&status), stderr(&status));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // For a monitoring system too.
    let check = allclear(&["status", "--check", "--endpoint", &socket], &[]);
    assert!(stdout(&check).contains("Azure calls this VM db-0"), "{}", stdout(&check));
    assert!(matches!(check.status.code(), Some(1 | 2)), "{check:?}");
}

#[test]
fn a_token_for_the_control_plane_is_requested_where_the_last_resort_is_permitted() {
    let bench = Bench::new();
    let table = "[control_plane]\nacknowledge = true\nendpoint = \"https://127.0.0.1:1\"\n";
    let (_, findings) = bench.asked(&format!("{}{table}", bench.text()));
    assert!(
        any(&findings, "the VM has a token for 1day; not checked: whether its identity has the role"),
        "{findings:#?}"
    );
    assert!(!any(&bench.asked(&bench.text()).1, "token"));
}
