//! The hook sets of `deploy/hooks`, embedded in this program: installed on a VM, with the tables of each set. So
//! tests and demos use the files that operators copy.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use anyhow::Context as _;
use toml::{Table, Value};

use super::Settings;

/// The installation folder in the tables.
const INSTALLED: &str = "/usr/lib/allclear/hooks/";

macro_rules! deployed {
    ($($name:literal)*) => { &[$(($name, include_str!(concat!("../../../deploy/hooks/", $name)))),*] };
}

const PROGRAMS: &[(&str, &str)] = deployed![
    "allclear_hook.py" "client.py" "disks.py" "etcd.py" "etcd_check.py" "etcd_cluster.py" "etcd_data.py" "mariadb.py"
    "mariadb_check.py" "mariadb_compare.py" "mariadb_configuration.py" "mariadb_copy.py" "mariadb_data.py"
    "mariadb_members.py" "mariadb_replication.py" "mariadb_rights.py" "mariadb_switch.py" "pgbouncer.py"
    "pgbouncer_pooler.py" "postgresql.py" "postgresql_candidate.py" "postgresql_check.py"
    "postgresql_check_replication.py" "postgresql_data.py" "postgresql_members.py" "postgresql_restore.py"
    "postgresql_server.py" "postgresql_switch.py" "psql.py" "redis_check.py" "redis_hook.py" "redis_members.py" "redis_sentinels.py"
    "redis_server.py" "redis_switch.py" "resp.py"
];

const TABLES: &[(&str, &str)] =
    deployed!["etcd.toml" "mariadb.toml" "patroni.toml" "pgbouncer.toml" "postgresql.toml" "redis.toml"];

/// Installs all hook sets on a VM, readable for the VM's ordinary user.
pub(super) fn install(vm: &Path) -> anyhow::Result<()> {
    let folder = vm.join("hooks");
    let readable = || Permissions::from_mode(0o755);
    fs::create_dir(&folder)?;
    fs::set_permissions(&folder, readable())?;
    for (name, text) in PROGRAMS {
        let path = folder.join(name);
        fs::write(&path, text)?;
        fs::set_permissions(&path, readable())?;
    }
    Ok(())
}

/// The tables `name` for the replica on the VM with the folder `vm`. `user` runs the hooks, where this is another
/// user than the user of this process.
pub fn tables(vm: &Path, user: Option<&str>, name: &str, settings: Settings) -> anyhow::Result<String> {
    let (_, text) = TABLES.iter().find(|(known, _)| *known == name).with_context(|| format!("there is no {name}"))?;
    let is_synchronous = settings.iter().any(|(name, _)| *name == "SYNCHRONOUS");
    let text = if is_synchronous { with_all_hooks(text) } else { (*text).to_owned() };
    let mut tables: Table = text.parse().with_context(|| name.to_owned())?;
    let here = HookHost { hooks: format!("{}/", vm.join("hooks").display()), settings, user: user.map(str::to_owned) };
    for workload in each(&mut tables, "workload") {
        if let Some(Value::Table(role)) = workload.get_mut("role") {
            here.adapt_commands(role);
            here.adapt_address(role, false);
        }
        for hook in each(workload, "hook") {
            here.adapt_commands(hook);
            here.adapt_address(hook, true);
        }
        if workload.contains_key("env") {
            here.adapt_surroundings(workload);
        }
    }
    Ok(format!("\n{tables}"))
}

/// The tables with the hooks that are comments: each from the line `#[[workload.hook]]` to the next empty line.
fn with_all_hooks(text: &str) -> String {
    let mut is_hook = false;
    let mut told = String::new();
    for line in text.lines() {
        is_hook = line == "#[[workload.hook]]" || (is_hook && !line.is_empty());
        told += line.strip_prefix('#').filter(|_| is_hook).unwrap_or(line);
        told.push('\n');
    }
    told
}

/// The values that differ between VMs.
struct HookHost {
    hooks: String,
    settings: Settings,
    user: Option<String>,
}

impl HookHost {
    fn adapt_surroundings(&self, workload: &mut Table) {
        workload.remove("user");
        if let Some(user) = &self.user {
            workload.insert("user".into(), Value::String(user.clone()));
        }
        // These servers have no secrets.
        if let Some(Value::Array(shown)) = workload.get_mut("env_shown") {
            shown.extend(self.settings.iter().map(|(name, _)| Value::String((*name).into())));
        }
        if let Some(Value::Table(env)) = workload.get_mut("env") {
            env.extend(self.settings.iter().map(|(name, value)| ((*name).into(), Value::String(value.clone()))));
        }
    }

    /// The setting `http` replaces the address of this VM's server, and the other settings are added beside `http`.
    /// `members` has the form MEMBER=VM, separated by blanks, and applies to hooks only.
    fn adapt_address(&self, table: &mut Table, is_hook: bool) {
        let Some(Value::String(address)) = table.get_mut("http") else { return };
        if let Some((_, here)) = self.settings.iter().find(|(name, _)| *name == "http") {
            let (_, path) = address.trim_start_matches("http://").split_once('/').unwrap_or_default();
            *address = format!("{here}/{path}");
        }
        for (name, value) in self.settings.iter().filter(|(name, _)| *name != "http") {
            let value = if *name == "members" {
                let pairs = value.split(' ').filter_map(|pair| pair.split_once('='));
                Value::Table(pairs.map(|(member, vm)| (member.into(), Value::String(vm.into()))).collect())
            } else {
                Value::String(value.clone())
            };
            if is_hook || *name != "members" {
                table.insert((*name).into(), value);
            }
        }
    }

    /// Replaces the program's folder.
    fn adapt_commands(&self, table: &mut Table) {
        for key in ["command", "confirm", "undo"] {
            for word in table.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                let Value::String(word) = word else { continue };
                if let Some(name) = word.strip_prefix(INSTALLED) {
                    *word = format!("{}{name}", self.hooks);
                }
            }
        }
    }
}

fn each<'t>(table: &'t mut Table, key: &str) -> impl Iterator<Item = &'t mut Table> {
    let array = table.get_mut(key).and_then(Value::as_array_mut);
    array.into_iter().flatten().filter_map(Value::as_table_mut)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_hook_set_and_every_table_is_with_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/hooks");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let is_part = |name: &String| Path::new(name).extension().is_some_and(|end| end == "py" || end == "toml");
        let mut deployed: Vec<String> = entries.filter(is_part).collect();
        let mut known: Vec<_> = PROGRAMS.iter().chain(TABLES).map(|(name, _)| (*name).to_owned()).collect();
        deployed.sort();
        known.sort();
        assert_eq!(known, deployed);
    }

    /// For installations of a part of the hook sets, the head of the tables lists the files of each program.
    #[test]
    fn the_head_of_the_tables_names_the_files_that_their_program_needs() {
        for (name, text) in TABLES.iter().filter(|(_, text)| text.contains(INSTALLED)) {
            let (_, list) = text.split_once("# Install in /usr/lib/allclear/hooks:").expect(name);
            let (list, _) = list.split_once(".py.").expect(name);
            let named: BTreeSet<String> = list
                .replace('#', "")
                .split(',')
                .map(|file| format!("{}.py", file.trim().trim_end_matches(".py")))
                .collect();
            let called = text.split(INSTALLED).skip(1).filter_map(|rest| rest.split('"').next());
            let mut needed: BTreeSet<String> = called.map(str::to_owned).collect();
            loop {
                let more: BTreeSet<String> = needed.iter().flat_map(|file| imported(file)).collect();
                if more.is_subset(&needed) {
                    break;
                }
                needed.extend(more);
            }
            assert_eq!(named, needed, "{name}");
        }
    }

    /// Files of `deploy/hooks` that a program imports.
    fn imported(file: &str) -> Vec<String> {
        let (_, text) = PROGRAMS.iter().find(|(name, _)| *name == file).expect(file);
        let words = text.lines().filter_map(|line| line.strip_prefix("from ").or(line.strip_prefix("import ")));
        let files = words.filter_map(|words| Some(format!("{}.py", words.split_whitespace().next()?)));
        files.filter(|file| PROGRAMS.iter().any(|(name, _)| name == file)).collect()
    }
}
