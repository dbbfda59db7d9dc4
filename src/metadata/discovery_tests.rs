//! Machines with the lease files of each client, as their distributions leave them.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::SystemTime;

use tempfile::TempDir;

use super::*;

const DHCLIENT: &str = include_str!("../../tests/metadata/leases/dhclient.eth0.leases");
const NETWORKD: &str = include_str!("../../tests/metadata/leases/networkd-2");
const MANAGER: &str = include_str!("../../tests/metadata/leases/internal-eth0.lease");
const NEW_MANAGER: &str = include_str!("../../tests/metadata/leases/internal-eth0-of-late.lease");

/// 1 January 2026.
const NOW: Timestamp = Timestamp(1_767_225_600_000);

struct Machine(TempDir);

impl Machine {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    /// Written so many seconds ago.
    fn with(self, path: &str, text: &str, seconds_ago: u64) -> Self {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_millis(NOW.0.unsigned_abs());
        File::options().write(true).open(&file).unwrap().set_modified(now - Duration::from_secs(seconds_ago)).unwrap();
        self
    }

    fn found(&self) -> Discovery {
        Discovery::of(self.0.path(), NOW)
    }

    fn endpoint(&self) -> String {
        self.found().endpoint()
    }
}

#[test]
fn each_client_of_dhcp_is_understood() {
    for (path, text) in [
        ("var/lib/dhcp/dhclient.eth0.leases", DHCLIENT),
        ("var/lib/dhclient/dhclient-eth0.lease", DHCLIENT),
        ("var/lib/NetworkManager/dhclient-5fb06bd0-eth0.lease", DHCLIENT),
        ("run/systemd/netif/leases/2", NETWORKD),
        ("var/lib/NetworkManager/internal-5fb06bd0-eth0.lease", MANAGER),
    ] {
        let machine = Machine::new().with(path, text, 60);
        let file = machine.path(path);
        assert_eq!(machine.found(), Discovery::Lease { address: Ipv4Addr::new(168, 63, 129, 16), file }, "{path}");
        assert_eq!(machine.endpoint(), "http://168.63.129.16");
        assert!(machine.found().to_string().contains(path));
    }
}

#[test]
fn without_a_lease_that_carries_the_option_the_endpoint_is_the_usual_one() {
    assert_eq!(Machine::new().found(), Discovery::Nothing { unread: Vec::new() });
    let machine = Machine::new()
        .with("var/lib/NetworkManager/internal-5fb06bd0-eth0.lease", NEW_MANAGER, 60)
        .with("var/lib/NetworkManager/secret_key", NETWORKD, 0)
        .with("var/lib/dhcp/dhclient.conf", DHCLIENT, 0);
    assert_eq!(machine.found(), Discovery::Nothing { unread: Vec::new() });
    assert_eq!(machine.endpoint(), USUAL);
    let a_day = 24 * 3600;
    assert_eq!(Machine::new().with("run/systemd/netif/leases/2", NETWORKD, a_day).endpoint(), USUAL, "it is over");
}

#[test]
fn the_newest_lease_counts_that_is_not_over() {
    let other = NETWORKD.replace("a83f8110", "0a000001");
    let both = |ago, other_ago| {
        let machine = Machine::new().with("var/lib/dhcp/dhclient.eth0.leases", DHCLIENT, ago);
        machine.with("run/systemd/netif/leases/3", &other, other_ago).endpoint()
    };
    assert_eq!(both(60, 30), "http://10.0.0.1");
    assert_eq!(both(30, 60), "http://168.63.129.16");
    assert_eq!(both(u64::from(u32::MAX) / 4, 24 * 3600), "http://168.63.129.16");
}

#[test]
fn what_somebody_else_may_have_written_is_not_believed() {
    let path = "var/lib/dhcp/dhclient.eth0.leases";
    let machine = Machine::new().with(path, DHCLIENT, 60);
    fs::set_permissions(machine.path(path), fs::Permissions::from_mode(0o666)).unwrap();
    let Discovery::Nothing { unread } = machine.found() else { panic!("{:?}", machine.found()) };
    assert!(unread[0].ends_with("dhclient.eth0.leases: everybody may write it"), "{unread:?}");
    assert!(machine.found().to_string().contains("everybody may write it"));

    let machine = Machine::new().with("home/leases/2", NETWORKD, 60);
    fs::create_dir_all(machine.path("run/systemd/netif/leases")).unwrap();
    symlink(machine.path("home/leases/2"), machine.path("run/systemd/netif/leases/2")).unwrap();
    fs::create_dir(machine.path("run/systemd/netif/leases/3")).unwrap();
    assert_eq!(machine.endpoint(), USUAL);
}

#[test]
fn an_address_that_cannot_be_one_is_refused_with_the_file_and_the_reason() {
    let machine = Machine::new().with("run/systemd/netif/leases/2", &NETWORKD.replace("a83f8110", "ffffffff"), 60);
    let found = machine.found();
    assert!(!found.is_found() && found.endpoint() == USUAL);
    let told = found.to_string();
    assert!(told.contains("leases/2: 255.255.255.255 is no machine's address"), "{told}");
}

#[test]
fn of_a_file_that_grew_for_years_the_end_is_read() {
    let old = DHCLIENT.replace("a8:3f:81:10", "a:0:0:1");
    let machine = Machine::new().with("var/lib/dhcp/dhclient.eth0.leases", &(old.repeat(2_000) + DHCLIENT), 60);
    assert_eq!(machine.endpoint(), "http://168.63.129.16");
}
