//! The metadata endpoint as a DHCP lease tells it, on a machine of its own: namespaces without any network but loopback,
//! where the fake cloud listens at the port of the real service, and nothing that goes wrong could reach that.

use std::process::{Command, Output};

use super::{program, stderr, stdout, written};

/// Makes the machine, and then runs the commands that are given on it. All that is left when they end ends with it.
const MACHINE: &str = r#"
ip link set lo up
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/netif/leases
"$1" fake-cloud --listen 127.0.0.9:79 --vms db-0 > "$2/cloud" &
until grep -q '^db-0 http://127.0.0.9' "$2/cloud"; do sleep 0.1; done
"#;
const LEASE: &str = r"printf 'ADDRESS=10.0.0.4\nLIFETIME=86400\nOPTION_245=7f000009\n' > /run/systemd/netif/leases/2
";

/// Nothing, and says so, where such a machine cannot be made.
fn on_a_machine(commands: &str, configuration: &str) -> Option<Output> {
    let unshare = ["--net", "--mount", "--propagation", "private", "--pid", "--mount-proc", "--fork", "--kill-child"];
    let is_possible = Command::new("unshare").args(unshare).args(["ip", "link", "set", "lo", "up"]).status();
    if !is_possible.is_ok_and(|status| status.success()) {
        println!("skipped, no machine of its own can be made here");
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = written(folder.path(), &configuration.replace("FOLDER", folder.path().to_str().unwrap()));
    let script = format!("{MACHINE}{commands}");
    let mut command = Command::new("unshare");
    command.args(unshare).args(["timeout", "120", "sh", "-euc", &script, "sh", program()]);
    Some(command.arg(folder.path()).arg(path).env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin").output().unwrap())
}

const DISCOVERED: &str = r#"
[replica]
data_dir = "FOLDER/data"
[operator]
socket = "FOLDER/operator"
[workloads]
socket = "FOLDER/workloads"
[metadata]
discover = "dhcp"
"#;

#[test]
fn the_endpoint_of_a_lease_is_found_by_doctor_and_used_by_a_replica() {
    let commands = r#"
"$1" doctor --config "$3"
"$1" run --config "$3" 2> "$2/log" &
until "$1" status --endpoint "$2/operator" --json 2>/dev/null | grep -q '"metadata":"healthy"'; do sleep 0.1; done
"$1" status --endpoint "$2/operator"
cat "$2/log"
"#;
    let Some(output) = on_a_machine(&format!("{LEASE}{commands}"), DISCOVERED) else { return };
    let (said, wrong) = (stdout(&output), stderr(&output));
    assert!(output.status.success(), "{said}\n{wrong}");
    assert!(wrong.contains("reading the scheduled events at http://127.0.0.9;"), "{wrong}");
    let found = "the DHCP lease in /run/systemd/netif/leases/2 has the metadata endpoint at 127.0.0.9 (option 245)";
    assert_eq!(said.matches(found).count(), 2, "by doctor and in the log: {said}");
    assert!(said.contains("http://127.0.0.9 answers with documents"), "{said}");
    assert!(said.contains("the instance metadata calls this VM db-0"), "{said}");
}

#[test]
fn an_endpoint_that_is_written_is_used_whatever_a_lease_says() {
    let elsewhere = LEASE.replace("7f000009", "7f000008");
    let configuration = format!("{DISCOVERED}endpoint = \"http://127.0.0.9\"\n");
    let Some(output) = on_a_machine(&format!("{elsewhere}\"$1\" doctor --config \"$3\""), &configuration) else {
        return;
    };
    let said = stdout(&output);
    assert!(output.status.success() && said.contains("http://127.0.0.9 answers with documents"), "{output:?}");
    assert!(!said.contains("DHCP"), "{said}");
}
