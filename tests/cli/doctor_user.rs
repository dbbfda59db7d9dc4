//! `allclear doctor` as root: the checks are those of the user that runs the replica.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use super::doctor::{Bench, any};
use super::{allclear, stdout, written};

#[test]
fn files_that_the_user_of_the_replica_cannot_use_are_told_to_root() {
    if !crate::left_out::is_root() {
        return;
    }
    let bench = Bench::new();
    for open in [bench.folder.path(), bench.certificates.path(), &bench.certificates.path().join("db-0")] {
        std::fs::set_permissions(open, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let key = bench.certificates.path().join("db-0/node.key");
    let of_nobody = |path: &Path| std::os::unix::fs::chown(path, Some(65534), Some(65534)).unwrap();
    let config = written(bench.folder.path(), &bench.text());
    let failed = || {
        let asked = ["doctor", "--config", &config, "--user", "nobody", "--json"];
        let output = allclear(&asked, &[("PATH", "/usr/bin:/bin")]);
        let report: Value = serde_json::from_str(stdout(&output)).unwrap();
        let findings = report["findings"].as_array().unwrap().clone();
        assert!(any(&findings, "every further check is made as nobody (uid 65534)"), "{findings:#?}");
        let failed = findings.iter().filter(|finding| finding["verdict"] == "fail");
        failed.map(|it| format!("{}: {}; {}", it["check"], it["what"], it["advice"])).collect::<Vec<_>>().join("\n")
    };
    std::fs::create_dir(bench.path("data")).unwrap();
    let told = failed();
    assert!(told.contains("node.key") && told.contains("may not write there"), "{told}");
    assert!(told.contains(&format!("run `chown -R nobody {}`", bench.path("data"))), "{told}");
    of_nobody(&key);
    of_nobody(Path::new(&bench.path("data")));
    std::fs::set_permissions(bench.path("data"), std::fs::Permissions::from_mode(0o700)).unwrap();
    // Every root of an ext4 disk has this folder.
    std::fs::create_dir(bench.path("data/lost+found")).unwrap();
    std::fs::set_permissions(bench.path("data/lost+found"), std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::create_dir(bench.path("data/hooks")).unwrap();
    std::fs::write(bench.path("data/hooks/a1"), "").unwrap();
    std::fs::set_permissions(bench.path("data/hooks/a1"), std::fs::Permissions::from_mode(0o600)).unwrap();
    let told = failed();
    assert!(told.contains("may not read and write") && told.contains("data/hooks (uid 0, mode 0755)"), "{told}");
    of_nobody(Path::new(&bench.path("data/hooks")));
    let told = failed();
    assert!(told.contains("data/hooks/a1 (uid 0, mode 0600)") && !told.contains("node.key"), "{told}");
    assert!(!told.contains("lost+found"), "{told}");
}
