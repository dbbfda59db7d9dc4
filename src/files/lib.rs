//! Owners and modes of a replica's files. A user with write access to data, keys or configuration can act as the
//! replica. So only root and the replica's user may own these files and every folder above.

use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nix::sys::stat::{Mode, umask};
use nix::unistd::{getegid, geteuid};

/// Another user could exchange the file, or an error prevents the check.
#[derive(Debug, thiserror::Error)]
pub enum Unsafe {
    #[error(
        "{} belongs to uid {owner}, and that user could replace its content: change the owner to uid {uid} or root, \
         or use another path",
        path.display()
    )]
    OfAnother { path: PathBuf, owner: u32, uid: u32 },
    #[error("{} can be written by {whom}, so its content could be replaced: chmod {mode} it, or use another path", path.display())]
    Writable { path: PathBuf, whom: &'static str, mode: &'static str },
    #[error("{} can be read by every user of this machine, and contains secrets: chmod o= it", .0.display())]
    Readable(PathBuf),
    #[error("{} is a symbolic link, and a replica keeps only files and directories of its own here: remove the link", .0.display())]
    Link(PathBuf),
    #[error("cannot use {}: {why}", path.display())]
    Unseen { path: PathBuf, why: io::Error },
}

/// Makes files of this process private to its user from now on, unless a mode is given explicitly.
pub fn keep_to_oneself() {
    umask(Mode::from_bits_truncate(0o077));
}

/// Creates the replica's folder if missing, closes the folder to other users, and returns the absolute path.
pub fn own_folder(path: &Path) -> Result<PathBuf, Unsafe> {
    let path = &std::path::absolute(path).map_err(unseen(path))?;
    check_above(path)?;
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(unseen(path))?;
    let found = fs::symlink_metadata(path).map_err(unseen(path))?;
    if found.is_symlink() {
        check(path, &found, own_uid())?;
    }
    let led = path.canonicalize().map_err(unseen(path))?;
    check_above(&led)?;
    own(&led, &fs::metadata(&led).map_err(unseen(&led))?)?;
    Ok(led)
}

/// Applies [`own_folder`], and closes each file and folder inside.
pub fn own_files(folder: &Path) -> Result<(), Unsafe> {
    let folder = own_folder(folder)?;
    for entry in fs::read_dir(&folder).map_err(unseen(&folder))? {
        let entry = entry.map_err(unseen(&folder))?.path();
        let found = match fs::symlink_metadata(&entry) {
            Ok(found) => found,
            // Another process of the replica has just removed the file.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(unseen(&entry)(error)),
        };
        if found.is_symlink() {
            return Err(Unsafe::Link(entry));
        }
        own(&entry, &found)?;
    }
    Ok(())
}

fn unseen(path: &Path) -> impl FnOnce(io::Error) -> Unsafe + use<> {
    let path = path.to_owned();
    move |why| Unsafe::Unseen { path, why }
}

/// Closes a file or folder of this user to others; root may be the owner instead, as of a disk's folder. A folder that
/// was open is closed, since files of other users inside show their owner; changes to a file that was open are
/// undetectable.
fn own(path: &Path, found: &Metadata) -> Result<(), Unsafe> {
    let is_own = found.uid() == geteuid().as_raw();
    if !(is_own && found.is_dir()) {
        check(path, found, own_uid())?;
    }
    if is_own && found.mode() & 0o077 != 0 {
        let mode = found.mode() & 0o700;
        let closed = fs::set_permissions(path, Permissions::from_mode(mode));
        closed.map_err(unseen(path))?;
    }
    Ok(())
}

/// Checks that only root and this user can exchange the present or future file at this path: the file itself, the
/// folders above, and the targets of links. A missing file has no owner to check.
pub fn check_way(path: &Path) -> Result<(), Unsafe> {
    check_way_for(path, own_uid())
}

/// Applies the check of [`check_way`] for a reader with this uid.
pub fn check_way_for(path: &Path, uid: u32) -> Result<(), Unsafe> {
    let path = &std::path::absolute(path).map_err(unseen(path))?;
    check_each(path, uid)?;
    match path.canonicalize() {
        Ok(led) if led != *path => check_each(&led, uid),
        _ => Ok(()),
    }
}

/// Checks a file with a secret: [`check_way_for`], and no access for other users. The group may read: root chooses its
/// members, and so packages and Kubernetes volumes give a service without root's rights access to root's files.
pub fn check_secret(path: &Path, uid: u32) -> Result<(), Unsafe> {
    check_way_for(path, uid)?;
    check_unread(path)
}

/// Checks that only the owner and the group may read the file.
pub fn check_unread(path: &Path) -> Result<(), Unsafe> {
    let mode = fs::metadata(path).map_err(unseen(path))?.mode();
    if mode & 0o007 != 0 {
        return Err(Unsafe::Readable(path.to_owned()));
    }
    Ok(())
}

/// This process's user.
pub fn own_uid() -> u32 {
    geteuid().as_raw()
}

fn check_above(path: &Path) -> Result<(), Unsafe> {
    path.parent().map_or(Ok(()), |above| check_each(above, own_uid()))
}

fn check_each(path: &Path, uid: u32) -> Result<(), Unsafe> {
    let ways: Vec<&Path> = path.ancestors().collect();
    for way in ways.into_iter().rev() {
        match fs::symlink_metadata(way) {
            Ok(found) => check(way, &found, uid)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(why) => return Err(unseen(way)(why)),
        }
    }
    Ok(())
}

fn check(path: &Path, found: &Metadata, uid: u32) -> Result<(), Unsafe> {
    let (owner, mode) = (found.uid(), found.mode());
    if owner != 0 && owner != uid {
        return Err(Unsafe::OfAnother { path: path.to_owned(), owner, uid });
    }
    // The mode of a link has no meaning, and a sticky folder protects each user's files.
    if found.is_symlink() || found.is_dir() && mode & 0o1000 != 0 {
        return Ok(());
    }
    let writable = |whom, mode| Err(Unsafe::Writable { path: path.to_owned(), whom, mode });
    if mode & 0o002 != 0 {
        return writable("every user of this machine", "o-w");
    }
    // The group of the process itself is accepted, as of a container's volume.
    if mode & 0o020 != 0 && found.gid() != getegid().as_raw() {
        return writable("its group", "g-w");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};

    use super::*;

    fn set(path: &Path, mode: u32) {
        fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().mode() & 0o7777
    }

    #[test]
    fn what_is_made_and_what_was_open_is_this_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("above/data");
        own_files(&own).unwrap();
        assert_eq!((mode(&own), mode(own.parent().unwrap())), (0o700, 0o700));
        set(&own, 0o755);
        for (name, open) in [("lock", 0o644), ("hooks", 0o777)] {
            let made = if name == "hooks" { fs::create_dir(own.join(name)) } else { fs::write(own.join(name), "") };
            made.unwrap();
            set(&own.join(name), open);
        }
        own_files(&own).unwrap();
        assert_eq!([&own, &own.join("lock"), &own.join("hooks")].map(|path| mode(path)), [0o700, 0o600, 0o700]);
    }

    #[test]
    fn who_could_exchange_it_is_told_with_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let (above, own) = (folder.path().join("above"), folder.path().join("above/data"));
        own_files(&own).unwrap();
        let refused = |what: &str| {
            let why = own_files(&own).unwrap_err().to_string();
            assert!(why.contains(what), "{what}: {why}");
        };
        set(&above, 0o777);
        refused("can be written by every user of this machine");
        set(&above, 0o1777);
        own_files(&own).unwrap();
        set(&above, 0o755);
        fs::write(own.join("consensus"), "").unwrap();
        set(&own.join("consensus"), 0o602);
        refused("chmod o-w it");
        set(&own.join("consensus"), 0o600);
        symlink("/etc/passwd", own.join("lock")).unwrap();
        refused("is a symbolic link");
        fs::remove_file(own.join("lock")).unwrap();
        if geteuid().is_root() {
            chown(own.join("consensus"), Some(64_218), None).unwrap();
            refused("belongs to uid 64218");
            chown(own.join("consensus"), Some(0), None).unwrap();
            chown(&above, None, Some(64_218)).unwrap();
            set(&above, 0o775);
            refused("can be written by its group");
            set(&above, 0o755);
            chown(&above, Some(64_218), None).unwrap();
            refused("above belongs to uid 64218");
        }
    }

    #[test]
    fn a_secret_is_for_its_owner_and_at_most_its_group() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("token");
        fs::write(&path, "").unwrap();
        for (mode, is_safe) in [(0o600, true), (0o440, true), (0o604, false), (0o601, false), (0o666, false)] {
            set(&path, mode);
            assert_eq!(check_secret(&path, own_uid()).is_ok(), is_safe, "{mode:o}");
        }
        set(&path, 0o644);
        assert!(check_secret(&path, own_uid()).unwrap_err().to_string().contains("chmod o= it"));
        set(&path, 0o600);
        if geteuid().is_root() {
            chown(&path, Some(64_218), None).unwrap();
            assert!(matches!(check_secret(&path, 0), Err(Unsafe::OfAnother { owner: 64_218, uid: 0, .. })));
            check_secret(&path, 64_218).unwrap();
        }
    }

    #[test]
    fn a_link_on_the_way_is_as_good_as_where_it_leads_and_who_made_it() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        fs::create_dir(&real).unwrap();
        symlink(&real, &link).unwrap();
        own_folder(&link.join("data")).unwrap();
        set(&real, 0o777);
        assert!(check_way(&link.join("data")).is_err());
        set(&real, 0o755);
        if geteuid().is_root() {
            nix::unistd::fchownat(
                nix::fcntl::AT_FDCWD,
                &link,
                Some(64_218.into()),
                None,
                nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW,
            )
            .unwrap();
            assert!(matches!(check_way(&link.join("data")), Err(Unsafe::OfAnother { owner: 64_218, .. })));
        }
        // A missing file has no owner.
        check_way(&folder.path().join("not/there")).unwrap();
    }
}
