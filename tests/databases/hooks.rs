//! The hook sets of `deploy/hooks`, installed on a VM of the test, with the tables that stand beside them: what is
//! tested is what people paste.

use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::trio::{System, Trio};

/// Where the tables suppose that the hook sets are.
const INSTALLED: &str = "/usr/lib/allclear/hooks/";

fn deployed() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/hooks")
}

/// Copies them all to a VM, where its ordinary user can read them.
pub(super) fn install(vm: &Path) {
    let folder = vm.join("hooks");
    fs::create_dir(&folder).unwrap();
    for entry in fs::read_dir(deployed()).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
    }
}

/// The tables of a system for the replica on this VM.
pub(crate) fn tables<S: System>(trio: &Trio, place: usize) -> String {
    S::TABLES.iter().map(|name| tables_of::<S>(trio, place, name)).collect()
}

fn tables_of<S: System>(trio: &Trio, place: usize, name: &str) -> String {
    let path = deployed().join(name);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut tables: Table = text.parse().unwrap();
    let here = Here {
        hooks: format!("{}/", trio.vms[place].folder.join("hooks").display()),
        settings: S::settings(trio, place),
        user: trio.user.as_ref().map(|user| user.name.clone()),
    };
    for workload in each(&mut tables, "workload") {
        if let Some(Value::Table(role)) = workload.get_mut("role") {
            here.adapt_commands(role);
            here.adapt_address(role);
        }
        for hook in each(workload, "hook") {
            here.adapt_commands(hook);
            here.adapt_hook(hook);
        }
    }
    format!("\n{tables}")
}

/// What differs from one VM to another.
struct Here {
    hooks: String,
    settings: Vec<(&'static str, String)>,
    user: Option<String>,
}

impl Here {
    fn adapt_hook(&self, hook: &mut Table) {
        // What is asked over HTTP has nothing but its address.
        if hook.contains_key("http") {
            return self.adapt_address(hook);
        }
        hook.remove("user");
        if let Some(user) = &self.user {
            hook.insert("user".into(), Value::String(user.clone()));
        }
        let env = hook.entry("env").or_insert_with(|| Value::Table(Table::new()));
        for (name, value) in &self.settings {
            env.as_table_mut().unwrap().insert((*name).into(), Value::String(value.clone()));
        }
    }

    /// `http` among the settings is where this VM's server is asked.
    fn adapt_address(&self, table: &mut Table) {
        let setting = self.settings.iter().find(|(name, _)| *name == "http");
        if let (Some(Value::String(address)), Some((_, here))) = (table.get_mut("http"), setting) {
            let (_, path) = address.trim_start_matches("http://").split_once('/').unwrap_or_default();
            *address = format!("{here}/{path}");
        }
    }

    /// Where the program is, and `NAME=VALUE` for `env` where a role is asked, which gets no table of its own.
    fn adapt_commands(&self, table: &mut Table) {
        for key in ["command", "confirm", "undo"] {
            for word in table.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten() {
                let Value::String(word) = word else { continue };
                if let Some(name) = word.strip_prefix(INSTALLED) {
                    *word = format!("{}{name}", self.hooks);
                }
                let is_of = |name: &str| word.strip_prefix(name).is_some_and(|rest| rest.starts_with('='));
                if let Some((name, value)) = self.settings.iter().find(|(name, _)| is_of(name)) {
                    *word = format!("{name}={value}");
                }
            }
        }
    }
}

fn each<'t>(table: &'t mut Table, key: &str) -> impl Iterator<Item = &'t mut Table> {
    let array = table.get_mut(key).and_then(Value::as_array_mut);
    array.into_iter().flatten().filter_map(Value::as_table_mut)
}
