//! The container image, built from the Dockerfile as an engine builds it. The stage that compiles needs an image from
//! the network, so the result of this stage is a program given by the test.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::package::stripped;
use super::{done, has, shipped};

/// The tag in the storage of one test.
const TAG: &str = "allclear";

pub(super) struct Image(TempDir);

impl Image {
    pub(super) fn built(program: &Path) -> Self {
        let image = Self(tempfile::tempdir().unwrap());
        let tree = image.0.path().join("build/tree");
        for folder in ["program/usr/bin", "data/run/allclear", "data/var/lib/allclear", "data/etc/allclear"] {
            std::fs::create_dir_all(tree.join(folder)).unwrap();
        }
        let mode = std::fs::Permissions::from_mode;
        std::fs::set_permissions(tree.join("data/var/lib/allclear"), mode(0o700)).unwrap();
        std::fs::copy(program, tree.join("program/usr/bin/allclear")).unwrap();
        let stage = format!("build={}", image.0.path().join("build").display());
        let file = shipped("container/Dockerfile");
        let mut build = image.buildah("build");
        build.args(["--format", "docker", "--isolation", "chroot", "--build-context", &stage, "--tag", TAG, "--file"]);
        done(build.arg(file).arg(image.0.path()));
        image
    }

    /// The builder, with its storage in the test's folder.
    fn buildah(&self, command: &str) -> Command {
        let mut buildah = Command::new("buildah");
        for (option, folder) in [("--root", "storage"), ("--runroot", "run")] {
            buildah.arg(option).arg(self.0.path().join(folder));
        }
        buildah.args(["--storage-driver", "vfs", command]);
        buildah
    }

    /// A part of the configuration of containers.
    fn setting(&self, name: &str) -> String {
        let field = format!("{{{{.Docker.Config.{name}}}}}");
        done(self.buildah("inspect").args(["--type", "image", "--format", &field, TAG])).trim().to_owned()
    }

    /// Copies the files of the image into a folder, with their owners.
    pub(super) fn unpack(&self, root: &Path) {
        let container = done(self.buildah("from").arg(TAG));
        let mounted = done(self.buildah("mount").arg(container.trim()));
        done(Command::new("cp").arg("--archive").arg(Path::new(mounted.trim()).join(".")).arg(root));
        done(self.buildah("rm").arg(container.trim()));
    }
}

#[test]
fn the_image_has_the_program_of_root_and_folders_of_its_user() {
    crate::left_out::long!();
    if !crate::left_out::is_root() || !["buildah", "strip"].into_iter().all(has) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let image = Image::built(&stripped(folder.path()));
    let user = image.setting("User");
    assert_eq!(image.setting("Entrypoint"), "[/usr/bin/allclear]");
    assert_eq!(image.setting("Cmd"), "[run --config /etc/allclear/allclear.toml]");
    assert!(image.setting("Healthcheck.Test").contains("/usr/bin/allclear status"));
    for folder in ["/run/allclear", "/var/lib/allclear"] {
        assert!(image.setting("Volumes").contains(folder), "{folder}");
    }
    let root = folder.path().join("root");
    std::fs::create_dir(&root).unwrap();
    image.unpack(&root);
    let program = root.join("usr/bin/allclear");
    let about = program.metadata().unwrap();
    assert_eq!((about.uid(), about.mode() & 0o7777), (0, 0o755), "its user must not change the program");
    assert_eq!(done(Command::new(&program).arg("--version")).trim(), format!("allclear {}", env!("CARGO_PKG_VERSION")));
    for (folder, mode) in [("run/allclear", 0o755), ("var/lib/allclear", 0o700)] {
        let about = root.join(folder).metadata().unwrap();
        let owner = format!("{}:{}", about.uid(), about.gid());
        assert_eq!((owner, about.mode() & 0o7777), (user.clone(), mode), "{folder}");
    }
}
