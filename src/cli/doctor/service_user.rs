//! The user of the replica. Root may read and write every file, so doctor as root would miss files without access for the
//! user of the service. Doctor as root goes on as the user of the service.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

use nix::unistd::{Gid, Group, Uid, User, getgrouplist, setgid, setgroups, setuid};

use super::finding::Finding;

const CHECK: &str = "user";
const UNIT: &str = "allclear.service";
/// Where systemd looks for units, the first in front.
const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The user and the groups in a unit.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
struct ServiceUser {
    user: String,
    group: Option<String>,
    further_groups: Vec<String>,
}

/// Becomes the given user, or as root the user of the service with this configuration. An error where this process may not
/// become the user, because the findings would be for another user.
pub(super) fn become_user(given: Option<&str>, config: &Path) -> Result<Option<Finding>, String> {
    let is_root = nix::unistd::geteuid().is_root();
    let of_unit = || service(&FOLDERS.map(Path::new), config).filter(|_| is_root);
    let given_user = |user: &str| ServiceUser { user: user.into(), ..ServiceUser::default() };
    let Some(wanted) = given.map(given_user).or_else(of_unit) else { return Ok(None) };
    let user = known_user(&wanted.user)?;
    if user.uid == nix::unistd::geteuid() {
        return Ok(None);
    }
    if !is_root {
        return Err(format!("only root may check as another user: run doctor as root, or as {}", user.name));
    }
    let gid = wanted.group.as_deref().map_or(Ok(user.gid), known_group)?;
    let further = wanted.further_groups.iter().map(|group| known_group(group)).collect::<Result<Vec<Gid>, String>>()?;
    change_to(&user, gid, further).map_err(|why| format!("cannot become {}: {}", user.name, why.desc()))?;
    let by = if given.is_some() { "--user names" } else { "allclear.service names for this configuration" };
    let what = format!("every further check is made as {} (uid {}), the user that {by}", user.name, user.uid);
    Ok(Some(Finding::ok(CHECK, what)))
}

fn change_to(user: &User, gid: Gid, further: Vec<Gid>) -> nix::Result<()> {
    let name = CString::new(user.name.as_str()).map_err(|_| nix::errno::Errno::EINVAL)?;
    let mut groups = getgrouplist(&name, gid)?;
    groups.extend(further);
    setgroups(&groups)?;
    setgid(gid)?;
    setuid(user.uid)
}

fn known_user(name: &str) -> Result<User, String> {
    let found = match name.parse() {
        Ok(uid) => User::from_uid(Uid::from_raw(uid)),
        Err(_) => User::from_name(name),
    };
    found.ok().flatten().ok_or_else(|| format!("the user {name} of the replica does not exist on this machine"))
}

fn known_group(name: &str) -> Result<Gid, String> {
    let found = name.parse().map_or_else(
        |_| Group::from_name(name).ok().flatten().map(|group| group.gid),
        |gid: u32| Some(Gid::from_raw(gid)),
    );
    found.ok_or_else(|| format!("the group {name} of the replica does not exist on this machine"))
}

/// The user of the installed service, if the service starts this configuration and has a user.
fn service(folders: &[&Path], config: &Path) -> Option<ServiceUser> {
    let unit = folders.iter().map(|folder| folder.join(UNIT)).find(|path| path.is_file())?;
    // A file of an earlier folder replaces the file of this name in a later folder.
    let mut further: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
    for folder in folders.iter().rev() {
        let entries = fs::read_dir(folder.join(format!("{UNIT}.d"))).into_iter().flatten().flatten();
        let files = entries.filter(|entry| entry.path().extension().is_some_and(|end| end == "conf"));
        further.extend(files.map(|entry| (entry.file_name(), entry.path())));
    }
    let texts = core::iter::once(unit).chain(further.into_values()).filter_map(|path| fs::read_to_string(path).ok());
    let (mut found, mut starts) = (ServiceUser::default(), String::new());
    for text in texts {
        read(&text, &mut found, &mut starts);
    }
    let absolute = |path: &Path| fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let words = starts.split_whitespace().map(|word| word.strip_prefix("--config=").unwrap_or(word));
    let is_this = words.into_iter().any(|word| absolute(Path::new(word)) == absolute(config));
    (is_this && !found.user.is_empty()).then_some(found)
}

/// Reads the settings of one file of a unit; a later setting replaces an earlier one, and an empty list begins anew.
fn read(text: &str, found: &mut ServiceUser, starts: &mut String) {
    // A backslash continues a line.
    let text = text.replace("\\\n", " ");
    for (key, value) in text.lines().filter_map(|line| line.trim().split_once('=')) {
        let value = value.trim();
        match key.trim_end() {
            "User" => value.clone_into(&mut found.user),
            "Group" => found.group = Some(value.to_owned()).filter(|value| !value.is_empty()),
            "SupplementaryGroups" if value.is_empty() => found.further_groups.clear(),
            "SupplementaryGroups" => found.further_groups.extend(value.split_whitespace().map(String::from)),
            "ExecStart" => value.clone_into(starts),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(folder: &Path, file: &str, text: &str) {
        let path = folder.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_user_is_that_of_the_unit_and_its_drop_ins_where_it_starts_this_configuration() {
        let [etc, lib] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let folders = [etc.path(), lib.path()];
        let config = etc.path().join("allclear.toml");
        fs::write(&config, "").unwrap();
        let found = |config: &Path| service(&folders, config);
        assert_eq!(found(&config), None);
        let unit = include_str!("../../../deploy/systemd/allclear.service");
        let starts = |config: &Path| unit.replace("/etc/allclear/allclear.toml", &config.display().to_string());
        written(lib.path(), UNIT, &starts(&config));
        let allclear = ServiceUser { user: "allclear".into(), group: Some("allclear".into()), further_groups: vec![] };
        assert_eq!(found(&config), Some(allclear));
        assert_eq!(found(&etc.path().join("another.toml")), None, "another replica");
        let written_otherwise = starts(&config).replace("--config ", "\\\n  --config=");
        assert_ne!(written_otherwise, starts(&config));
        written(lib.path(), UNIT, &written_otherwise);
        assert!(found(&config).is_some());
        let drop_in = include_str!("../../../deploy/systemd/database-user.conf");
        written(lib.path(), "allclear.service.d/user.conf", "[Service]\nUser=nobody\n");
        written(etc.path(), "allclear.service.d/user.conf", drop_in);
        let postgres = ServiceUser {
            user: "postgres".into(),
            group: Some("postgres".into()),
            further_groups: vec!["allclear".into()],
        };
        assert_eq!(found(&config), Some(postgres));
        written(etc.path(), UNIT, "[Service]\nExecStart=/usr/bin/true\n");
        assert_eq!(found(&config), None, "a unit of the administrator replaces the unit of the package");
    }

    #[test]
    fn nobody_is_a_user_and_a_made_up_name_is_none() {
        assert_eq!(known_user("root").map(|user| user.uid), Ok(Uid::from_raw(0)));
        assert_eq!(known_user("0").map(|user| user.name), Ok("root".into()));
        assert!(known_user("no such user").unwrap_err().contains("does not exist on this machine"));
        assert!(known_group("no such group").is_err());
    }
}
