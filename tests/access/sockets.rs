//! The sockets themselves: mode, owner, and files already present at a socket's path.

use std::fs::{Permissions, set_permissions, symlink_metadata};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use nix::unistd::geteuid;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::cluster::Cluster;
use super::somebody::{STRANGER, runs_as};

/// Only a failing test waits this long.
const LIMIT: Duration = Duration::from_mins(2);

fn mode(path: &Path) -> u32 {
    symlink_metadata(path).unwrap().mode() & 0o7777
}

fn open(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// gRPC's C core names the path of the socket as the authority, which is no valid name of a host.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_may_name_any_authority() {
    const CALLS: &str = "import grpc, sys\n\
        for path in sys.argv[1:]:\n\
        \x20   channel = grpc.insecure_channel('unix:' + path)\n\
        \x20   check = channel.unary_unary('/grpc.health.v1.Health/Check')\n\
        \x20   print([check(b'', timeout=60) for _ in range(3)])\n";
    let Some((python, _)) = crate::clients::python::installed() else { return };
    let cluster = Cluster::of(&["db-0"]).start().await;
    let sockets = [cluster.replicas[0].socket.clone(), cluster.door(0)];
    let called = Command::new(python).args(["-c", CALLS]).args(sockets).output().unwrap();
    // Three answers of SERVING at each socket.
    let answers = "[b'\\x08\\x01', b'\\x08\\x01', b'\\x08\\x01']\n".repeat(2);
    assert_eq!(String::from_utf8(called.stdout).unwrap(), answers, "{}", String::from_utf8_lossy(&called.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_have_their_modes_and_their_owner_whatever_the_umask_is_and_replace_what_a_killed_replica_left() {
    let mut cluster = Cluster::of(&["db-0"]).cold().await;
    // Root can write into folders without write permission.
    let umasks = if geteuid().is_root() { ["000", "077", "777"] } else { ["000", "077", "007"] };
    for umask in umasks {
        let program = cluster.folder.path().join(format!("with-umask-{umask}"));
        let script = format!("#!/bin/sh\numask {umask}\nexec {} \"$@\"\n", env!("CARGO_BIN_EXE_allclear"));
        std::fs::write(&program, script).unwrap();
        open(&program, 0o755);
        cluster.replica_runs(0, &program);
        cluster.start(0);
        cluster.ready().await;
        for (path, wanted) in [(cluster.replicas[0].socket.clone(), 0o600), (cluster.door(0), 0o660)] {
            assert_eq!(mode(&path), wanted, "{} with umask {umask}", path.display());
            assert_eq!(symlink_metadata(&path).unwrap().uid(), geteuid().as_raw());
        }
        cluster.kill(0);
        assert!(cluster.replicas[0].socket.exists() && cluster.door(0).exists(), "nobody cleared them away");
    }
}

/// The exit code of a replica that is about to end by itself.
async fn code_at_the_end(cluster: &mut Cluster) -> Option<i32> {
    let began = Instant::now();
    loop {
        if let Some(ended) = cluster.ended(0) {
            return ended.code();
        }
        assert!(began.elapsed() < LIMIT, "it goes on");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_else_lies_at_a_sockets_path_is_told_of_and_stays_as_it_is() {
    let mut cluster = Cluster::of(&["db-0"]).cold().await;
    let victim = cluster.folder.path().join("victim");
    std::fs::write(&victim, "precious").unwrap();
    open(&victim, 0o640);
    for (path, key) in [(cluster.replicas[0].socket.clone(), "operator"), (cluster.door(0), "workloads")] {
        symlink(&victim, &path).unwrap();
        cluster.start(0);
        assert_eq!(code_at_the_end(&mut cluster).await, Some(1), "{key}");
        let told = format!("{} exists and is a symbolic link", path.display());
        assert!(cluster.log(0).contains(&told), "{key}: {}", cluster.log(0));
        assert!(symlink_metadata(&path).unwrap().is_symlink(), "{key}");
        std::fs::remove_file(&path).unwrap();
    }
    assert_eq!((std::fs::read_to_string(&victim).unwrap().as_str(), mode(&victim)), ("precious", 0o640));
    cluster.start(0);
    cluster.ready().await;
}

/// A complete configuration, in a folder of this user.
fn configured(folder: &TempDir, uid: u32) -> String {
    let path = |name: &str| folder.path().join(name).display().to_string();
    let toml = format!(
        "replica = {{ name = \"db-0\", data_dir = {:?} }}\n\
         metadata.endpoint = \"http://127.0.0.1:1\"\nstatus.listen = \"127.0.0.3:0\"\noperator.socket = {:?}\n\
         workloads.socket = {:?}\n",
        path("data"),
        path("operator"),
        path("workloads"),
    );
    std::fs::write(path("toml"), toml).unwrap();
    chown(folder.path(), Some(uid), Some(uid)).unwrap();
    open(folder.path(), 0o755);
    path("toml")
}

#[test]
fn a_socket_that_another_user_serves_is_not_taken_from_him() {
    if !crate::left_out::is_root() {
        return;
    }
    let folder = TempDir::with_prefix("ac").unwrap();
    let config = configured(&folder, STRANGER);
    let socket = folder.path().join("operator");
    let listener = UnixListener::bind(&socket).unwrap();
    open(&socket, 0o600);
    let before = symlink_metadata(&socket).unwrap().ino();
    let ended = runs_as(STRANGER, &["run", "--config", &config]);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && said.contains("cannot serve"), "{said}");
    assert_eq!(symlink_metadata(&socket).unwrap().ino(), before);
    let _calls = UnixStream::connect(&socket).unwrap();
    listener.accept().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_in_which_others_could_exchange_the_socket_is_told_of() {
    let mut cluster = Cluster::of(&["db-0"]).cold().await;
    // The replica's data is elsewhere: with its data in this folder the replica would not start.
    let folder = cluster.folder.path().join("run");
    std::fs::create_dir(&folder).unwrap();
    let mut toml = std::fs::read_to_string(cluster.configuration(0)).unwrap();
    for (socket, name) in [(cluster.replicas[0].socket.clone(), "operator"), (cluster.door(0), "workloads")] {
        toml = toml.replace(socket.to_str().unwrap(), folder.join(name).to_str().unwrap());
    }
    std::fs::write(cluster.configuration(0), toml).unwrap();
    let told = |cluster: &Cluster, who: &str| {
        let lines = cluster.log(0);
        lines.lines().filter(|line| line.contains("socket replaceable by other users") && line.contains(who)).count()
    };
    for (mode, owner, who, times) in [
        (0o1777, None, "", 0),
        (0o777, None, "every user of this machine", 2),
        (
            0o755,
            geteuid().is_root().then_some(STRANGER),
            "belongs to uid 65531",
            if geteuid().is_root() { 2 } else { 0 },
        ),
    ] {
        open(&folder, mode);
        chown(&folder, owner, None).unwrap();
        cluster.start(0);
        cluster
            .until_true("told of both", async || told(&cluster, who) == times && folder.join("workloads").exists())
            .await;
        cluster.stop(0);
    }
}
