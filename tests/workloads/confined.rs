//! The initial environment of a hook and the limits of its access, however its replica was started.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::PathBuf;

use allclear::hooks::{HookCommand, HookEnvironment, HookOutcome, Runner};
use nix::fcntl::{FcntlArg, FdFlag, fcntl};

use crate::workloads::bench::{Bench, end, task};

/// Runs a hook under a supervisor started with the prefix `before`.
async fn run_under(bench: &Bench, before: &str, hook: &HookCommand) -> HookOutcome {
    let wrapper = bench.program("wrapper", &format!("{before} {} \"$@\"", env!("CARGO_BIN_EXE_allclear")));
    let (runner, mut reports) = Runner::open(&bench.spool(), wrapper, HookEnvironment::default()).unwrap();
    runner.run(&task(), hook);
    end(&mut reports).await
}

#[tokio::test]
async fn a_hook_has_three_descriptors_whatever_its_replica_was_handed() {
    // The test acts as the replica here, and has inherited a file.
    let handed = File::open("/etc/passwd").unwrap();
    fcntl(&handed, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    let bench = Bench::new();
    let (runner, mut reports) = bench.open();
    let count = "n=0; while [ $n -lt 1024 ]; do [ -e /proc/$$/fd/$n ] && echo $n; n=$((n + 1)); done; true";
    runner.run(&task(), &bench.shell(count));
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    assert_eq!(bench.printed("stdout"), "0\n1\n2\n");
}

#[tokio::test]
async fn a_hook_begins_in_the_same_way_however_its_replica_was_started() {
    let bench = Bench::new();
    let odd = "trap '' HUP INT QUIT TERM USR1 USR2 ALRM TSTP TTIN TTOU XFSZ PIPE; umask 0; cd /tmp; export ODD=1; exec";
    let look = "grep -hE '^(Umask|SigBlk|SigIgn):' /proc/self/status; pwd; env | grep -c ODD; \
                cut -d ' ' -f 7 /proc/self/stat; tr '\\0' '\\n' < /proc/$PPID/environ | grep -cE '^(CARGO|PATH|HOME)'";
    run_under(&bench, odd, &bench.shell(look)).await;
    let printed = bench.printed("stdout");
    let (before, ignored) = printed.split_once("SigIgn:\t").unwrap();
    let (ignored, after) = ignored.split_once('\n').unwrap();
    assert_eq!((before, after), ("Umask:\t0077\nSigBlk:\t0000000000000000\n", "/\n0\n0\n0\n"));
    // Except the signals that the C library reserves and sets for itself.
    assert_eq!(u64::from_str_radix(ignored, 16).unwrap() & 0x7fff_ffff, 0, "{ignored}");
}

#[tokio::test]
async fn ambient_capabilities_do_not_reach_a_hook_of_another_user() {
    if !crate::left_out::is_root() {
        return;
    }
    let ambient = "exec setpriv --inh-caps=+net_raw --ambient-caps=+net_raw";
    let bench = Bench::new();
    let hook = HookCommand { user: Some("nobody".into()), ..bench.shell("grep -E '^Cap(Eff|Amb)' /proc/self/status") };
    assert_eq!(run_under(&bench, ambient, &hook).await, HookOutcome::Done, "{}", bench.printed("stderr"));
    assert_eq!(bench.printed("stdout"), "CapEff:\t0000000000000000\nCapAmb:\t0000000000000000\n");
    let bench = Bench::new();
    let hook = bench.shell("exit 0");
    assert_eq!(run_under(&bench, ambient, &hook).await, HookOutcome::Done, "who stays as he is gains nothing");
}

#[tokio::test]
async fn a_hook_of_another_user_reads_nothing_of_its_replica_or_of_another_hook() {
    if !crate::left_out::is_root() {
        return;
    }
    let bench = Bench::new();
    fs::set_permissions(bench.folder.path(), Permissions::from_mode(0o755)).unwrap();
    // The other hook is this test: both belong to another user.
    let (spool, other) = (bench.spool(), std::process::id());
    let tries = format!(
        "for file in /proc/$PPID/environ /proc/$PPID/mem /proc/{other}/environ /proc/{other}/mem /proc/{other}/fd/0 \
         {spool}/.lock {spool}/*/request.json; do [ -r $file ] && cat $file; done; \
         touch {spool}/mine; ln -s /etc/passwd {spool}/link; kill -0 $PPID && echo signalled; grep Cap /proc/self/status",
        spool = spool.display()
    );
    let (runner, mut reports) = bench.open();
    runner.run(&task(), &HookCommand { user: Some("nobody".into()), ..bench.shell(&tries) });
    assert_eq!(end(&mut reports).await, HookOutcome::Done);
    let none = |set: &str| format!("Cap{set}:\t0000000000000000\n");
    let printed = bench.printed("stdout");
    let (gained, bounding) = printed.split_at(printed.find("CapBnd").unwrap());
    assert_eq!(gained, ["Inh", "Prm", "Eff"].map(none).concat(), "{}", bench.printed("stderr"));
    assert!(bounding.ends_with(&none("Amb")), "{bounding}");
    let left: Vec<_> = fs::read_dir(&spool).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| name != "mine" && name != "link"), "{left:?}");
}

#[tokio::test]
async fn a_spool_of_somebody_else_is_refused_and_an_open_one_is_closed() {
    let bench = Bench::new();
    fs::create_dir(bench.spool()).unwrap();
    fs::set_permissions(bench.spool(), Permissions::from_mode(0o777)).unwrap();
    drop(bench.open());
    assert_eq!(fs::metadata(bench.spool()).unwrap().permissions().mode() & 0o777, 0o700);
    if !crate::left_out::is_root() {
        return;
    }
    chown(bench.spool(), Some(65534), Some(65534)).unwrap();
    let refused = Runner::open(&bench.spool(), PathBuf::from("/bin/false"), HookEnvironment::default()).err().unwrap();
    assert!(refused.to_string().contains("belongs to uid 65534"), "{refused}");
}

#[tokio::test]
async fn what_a_hook_says_disturbs_no_terminal_and_no_line() {
    let said = r"printf 'it \033[2Jfailed\r\342\200\256desrever\n' >&2; exit 1";
    assert_eq!(crate::workloads::bench::outcome(said).await, HookOutcome::Failed("it  [2Jfailed  desrever".into()));
}
