//! Patroni whose REST API speaks HTTPS, requires a certificate and a password, and whose members have other names than
//! their VMs.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use super::super::certificates::Authority;
use super::super::events;
use super::super::stage::Kind;
use super::super::trio::{DatabaseVm, ThreeNodeBed};
use super::{Patroni, Setup, rest};

pub(super) struct Secured;

const PASSWORD: &str = "open sesame";

impl Setup for Secured {
    const NAME: &'static str = "Patroni over HTTPS";

    fn prepare(trio: &ThreeNodeBed) {
        let (authority, folder) = (Authority::new(), &trio.elsewhere.folder);
        authority.file(folder, "ca.pem");
        authority.issue(folder, trio.vms[0].host());
        authority.issue(folder, "client");
        // The hooks' user trusts no file of another user, and the servers have their own files.
        fs::create_dir(of_hooks(trio, "")).unwrap();
        for name in ["ca.pem", "client.pem", "client.key"] {
            fs::copy(file(trio, name), of_hooks(trio, name)).unwrap();
        }
        let password = of_hooks(trio, "password");
        fs::write(&password, PASSWORD).unwrap();
        fs::set_permissions(&password, fs::Permissions::from_mode(0o600)).unwrap();
        for file in fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()) {
            trio.own(&file).unwrap();
        }
    }

    fn member(vm: &str) -> String {
        vm.replace("db-", "pg-")
    }

    fn own(trio: &ThreeNodeBed, vm: &DatabaseVm) -> (String, String) {
        let path = |name: &str| file(trio, name).display().to_string();
        let (ca, certificate, key) =
            (path("ca.pem"), path(&format!("{}.pem", vm.host())), path(&format!("{}.key", vm.host())));
        let rest = format!(
            ", certfile: '{certificate}', keyfile: '{key}', cafile: '{ca}', verify_client: required, authentication: \
             {{username: allclear, password: '{PASSWORD}'}}"
        );
        let (certificate, key) = (path("client.pem"), path("client.key"));
        (rest, format!("ctl: {{cacert: '{ca}', certfile: '{certificate}', keyfile: '{key}'}}\n"))
    }

    fn settings(trio: &ThreeNodeBed, vm: &DatabaseVm) -> Vec<(&'static str, String)> {
        let path = |name: &str| of_hooks(trio, name).display().to_string();
        let members = trio.vms.iter().map(|vm| format!("{}={}", Self::member(vm.name).to_uppercase(), vm.name));
        vec![
            ("http", format!("https://{}", rest(vm))),
            ("ca", path("ca.pem")),
            ("cert", path("client.pem")),
            ("key", path("client.key")),
            ("username", "allclear".to_owned()),
            ("password_file", path("password")),
            ("members", members.collect::<Vec<_>>().join(" ")),
        ]
    }
}

fn file(trio: &ThreeNodeBed, name: &str) -> PathBuf {
    trio.elsewhere.folder.join(name)
}

fn of_hooks(trio: &ThreeNodeBed, name: &str) -> PathBuf {
    trio.elsewhere.folder.with_file_name("of-hooks").join(name)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "all of them take half an hour"]
async fn a_reboot_of_the_primarys_vm_costs_no_acknowledged_write() {
    events::takes_the_primary::<Patroni<Secured>>(Kind::Reboot).await;
}
