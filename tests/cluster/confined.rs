//! Access of hooks and role programs to the replica that starts them.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use serde_json::json;

use super::cluster::{Cluster, Plan};
use super::workload::hook;

/// A user id without a user on this machine, so that the processes count for no other user.
const UID: u32 = 64_217;

/// Tries to read the replica's process; each finding goes to the hooks' log.
const CURIOUS: &str = r#"#!/bin/sh
replica=$(cat "$FOLDER/pid")
for file in environ mem maps fd/0 fd/4; do
    head -c 1 "/proc/$replica/$file" > /dev/null 2>&1 && echo "found $file" >> "$FOLDER/hooks.log"
done
ls "/proc/$replica/fd" > /dev/null 2>&1 && echo "found fd" >> "$FOLDER/hooks.log"
[ -r "/proc/$replica/stat" ] && echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE end" >> "$FOLDER/hooks.log"
exit 0
"#;

/// Starts every process that the user may have, and ignores SIGTERM.
const BOMB: &str = r#"#!/bin/sh
[ "$ALLCLEAR_INTENT" = run ] && [ ! -e "$FOLDER/began" ] || exit 0
exec perl -e '$SIG{TERM} = "IGNORE"; my $folder = shift; open my $began, ">", "$folder/began";
    while (1) { defined(fork()) or select(undef, undef, undef, 0.05) }' "$FOLDER"
"#;

/// Starts one replica as an unused user without root rights, and limits all started processes to `processes`.
async fn of_nobody(plan: Plan, processes: u32) -> Cluster {
    let mut cluster = plan.cold().await;
    let folder = cluster.folder.path();
    let program = folder.join("as-nobody");
    let change = format!("setpriv --reuid={UID} --regid={UID} --clear-groups");
    let script =
        format!("#!/bin/sh\nexec prlimit --nproc={processes} {change} {} \"$@\"\n", env!("CARGO_BIN_EXE_allclear"));
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let entries = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for path in entries(folder).chain(entries(&folder.join("0.tls"))).chain([folder.to_owned()]) {
        chown(path, Some(UID), Some(UID)).unwrap();
    }
    cluster.replica_runs(0, &program);
    cluster.start(0);
    cluster.ready().await;
    let pid = cluster.pid(0).unwrap();
    fs::write(cluster.folder.path().join("pid"), pid.to_string()).unwrap();
    cluster
}

#[tokio::test]
async fn a_hook_of_the_replicas_own_user_cannot_look_into_the_replica() {
    if !crate::left_out::is_root() {
        return;
    }
    let plan = Cluster::of(&["db-0"]).workload("database", vec![hook("drain")]).script(CURIOUS);
    let cluster = of_nobody(plan, 4_000).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    cluster.until_stage(0, &id, "started").await;
    assert_eq!(cluster.hooks.written(), "db-0 database drain end\n");
}

#[tokio::test]
async fn a_hook_that_forks_without_end_leaves_the_replica_at_work() {
    crate::left_out::long!();
    if !crate::left_out::is_root() {
        return;
    }
    let drain = hook("drain").with("timeout = \"4s\"").with("attempts = 2");
    let plan = Cluster::of(&["db-0"]).workload("database", vec![drain]).script(BOMB);
    let cluster = of_nobody(plan, 200).await;
    let id = cluster.cloud.announce(json!({ "type": "Reboot", "vm": 0 })).await;
    let bombs = || cluster.processes_named("perl").len();
    cluster.until_true("a hundred of them", async || bombs() > 100).await;
    assert!(cluster.status(0).await.is_some(), "it answers meanwhile");
    let event = cluster.until_stage(0, &id, "started").await;
    let outcomes: Vec<_> = event.hooks.iter().map(|hook| hook.outcome.as_deref().unwrap()).collect();
    assert_eq!(outcomes, ["timed_out", "done"]);
    assert_eq!(bombs(), 0);
    assert!(!cluster.log(0).contains("panicked"), "{}", cluster.log(0));
}

#[tokio::test]
async fn what_a_replica_was_handed_is_closed_and_programs_that_tell_roles_have_none_of_it() {
    let plan = Cluster::of(&["db-0"]).workload("database", vec![hook("drain")]).with_primary("db-0");
    let path = ("PATH", ":bin:/usr/bin:.:/bin".to_owned());
    let mut cluster = plan.environments(vec![vec![path, ("ODD", "1".to_owned())]]).cold().await;
    let (handed, fds) = (cluster.folder.path().join("handed"), cluster.folder.path().join("fds"));
    let look = "for n in 3 4 5 6 7 8 9; do readlink /proc/$$/fd/$n; done; echo $PATH$ODD";
    let count = format!("( {look} ) > {fds}.new; mv {fds}.new {fds}; ", fds = fds.display());
    let path = cluster.configuration(0);
    let toml = fs::read_to_string(&path).unwrap();
    fs::write(&path, toml.replace("\"-c\", \"", &format!("\"-c\", \"{count}"))).unwrap();
    let file = File::create(&handed).unwrap();
    fcntl(&file, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    cluster.start(0);
    drop(file);
    cluster.ready().await;
    cluster.until_true("a role", async || fds.exists()).await;
    assert_eq!(fs::read_to_string(&fds).unwrap(), "/usr/bin:/bin\n");
    assert!(!descriptors(cluster.pid(0).unwrap()).contains(&handed));
}

fn descriptors(pid: i32) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok()).collect()
}
