//! Whether the programs of hooks exist and may be run, and whether the users of the hooks exist.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use nix::unistd::{AccessFlags, Uid, User, access, geteuid};

use super::finding::Finding;
use allclear_server::config::{self, Config, ConfiguredHook, ConfiguredRoleSource, HookTarget};

const CHECK: &str = "hook";

/// A program, the user that runs the program, and the requiring hook or role.
struct RequiredProgram<'a> {
    by: String,
    program: &'a str,
    path: Option<&'a str>,
    hides_path: bool,
    user: Option<&'a str>,
}

pub(super) fn findings(config: &Config) -> Vec<Finding> {
    let usual = config::environment().find(|(name, _)| name == "PATH").map(|(_, path)| path).unwrap_or_default();
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for wanted in config.workloads.iter().flat_map(of_workload) {
        if seen.insert((wanted.program, wanted.path, wanted.user)) {
            findings.push(tried(&wanted, wanted.path.unwrap_or(&usual)));
        }
    }
    let users: BTreeSet<&str> = hooks(config).filter_map(|hook| hook.user.as_deref()).collect();
    findings.extend(users.into_iter().map(user));
    if hooks(config).next().is_none() {
        findings.push(Finding::ok(CHECK, "no hook is configured; workloads may still connect over gRPC"));
    }
    findings
}

fn hooks(config: &Config) -> impl Iterator<Item = &ConfiguredHook> {
    config.workloads.iter().flat_map(|workload| &workload.hooks)
}

fn of_workload(workload: &config::ConfiguredWorkload) -> Vec<RequiredProgram<'_>> {
    let mut all = Vec::new();
    if let Some(role) = &workload.role
        && let ConfiguredRoleSource::Command(argv) = &role.source
    {
        let (path, hides_path) = path_of(&role.settings.env);
        let (by, user) = (format!("{}.role", workload.name), role.settings.user.as_deref());
        all.extend(argv.first().map(|program| RequiredProgram { by, program, path, hides_path, user }));
    }
    for hook in &workload.hooks {
        let (path, hides_path) = path_of(&hook.env);
        for way in [Some(&hook.run), hook.confirm.as_ref(), hook.undo.as_ref()].into_iter().flatten() {
            let HookTarget::Command(argv) = way else { continue };
            let by = format!("{}.{}", workload.name, hook.registered.phase);
            let user = hook.user.as_deref();
            all.extend(argv.first().map(|program| RequiredProgram { by, program, path, hides_path, user }));
        }
    }
    all
}

/// The folders of the commands' programs, and whether the value is secret.
fn path_of(env: &config::Env) -> (Option<&str>, bool) {
    let path = env.written.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_str());
    (path, path.is_some() && !env.shown.contains("PATH"))
}

fn tried(wanted: &RequiredProgram<'_>, path: &str) -> Finding {
    let RequiredProgram { by, program, user, .. } = wanted;
    let Some(file) = found(program, path) else {
        let (what, advice) = if program.contains('/') {
            (format!("{program} of {by} does not exist"), "install the program, or correct the command".to_owned())
        } else {
            let path = if wanted.hides_path { "of the hook's env" } else { path };
            (
                format!("{program} of {by} is not in the PATH {path}"),
                "write the full path of the program, or set PATH in env".to_owned(),
            )
        };
        return Finding::fail(CHECK, what, advice);
    };
    let shown = file.display();
    if !file.is_file() {
        return Finding::fail(CHECK, format!("{shown} of {by} is no file"), "correct the command");
    }
    if !may_run(&file, *user) {
        let who = user.map_or_else(|| format!("uid {}", geteuid()), Into::into);
        let what = format!("{shown} of {by} may not be run by {who}");
        return Finding::fail(CHECK, what, format!("run `chmod +x {shown}`, or run the hook as another user"));
    }
    Finding::ok(CHECK, format!("{shown} of {by} can be run"))
}

fn found(program: &str, path: &str) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(|file| file.exists());
    }
    path.split(':').map(|folder| Path::new(folder).join(program)).find(|file| file.exists())
}

fn may_run(file: &Path, user: Option<&str>) -> bool {
    may(file, user, AccessFlags::X_OK, 0o1)
}

/// Whether this user has access, as far as the file's mode shows: `bit` is the bit for all other users.
pub(super) fn may(file: &Path, user: Option<&str>, access_flag: AccessFlags, bit: u32) -> bool {
    let other = user.and_then(|name| User::from_name(name).ok().flatten()).filter(|user| user.uid != geteuid());
    let (Some(user), Ok(found)) = (other, file.metadata()) else {
        return access(file, access_flag).is_ok();
    };
    let bit = match (found.uid() == user.uid.as_raw(), found.gid() == user.gid.as_raw()) {
        (true, _) => bit << 6,
        (false, true) => bit << 3,
        (false, false) => bit,
    };
    found.mode() & bit != 0
}

fn user(name: &str) -> Finding {
    match User::from_name(name) {
        Ok(Some(user)) => becoming(name, user.uid, geteuid()),
        Ok(None) => {
            Finding::fail(CHECK, format!("the user {name} of hooks does not exist"), "add the user, or correct `user`")
        }
        Err(error) => Finding::fail(
            CHECK,
            format!("the user {name} of hooks cannot be looked up: {}", error.desc()),
            "check the users of this machine: `getent passwd`",
        ),
    }
}

/// Whether a replica of the user `own` can start hooks as `user`.
fn becoming(name: &str, user: Uid, own: Uid) -> Finding {
    if own.is_root() || user == own {
        return Finding::ok(CHECK, format!("the user {name} of hooks exists (uid {user})"));
    }
    let what =
        format!("hooks run as {name} (uid {user}), and uid {own} cannot become {name}: every such hook would fail");
    let advice = format!(
        "run the replica and doctor as root, or both as {name}; or leave `user` out. If the replica already runs as \
         root, run doctor as root too"
    );
    Finding::fail(CHECK, what, advice)
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity;
    use super::*;

    #[test]
    fn a_user_that_the_replica_cannot_become_is_a_fault() {
        let [root, db, other] = [0, 70, 71].map(Uid::from_raw);
        for own in [root, db] {
            assert!(becoming("postgres", db, own).verdict == Severity::Ok, "{own}");
        }
        assert_eq!(becoming("postgres", db, other).verdict, Severity::Fail);
    }
}
