//! `allclear run`, before a replica can run.

use std::net::TcpListener;

use super::{allclear, free_addresses, stderr, stdout, written};

#[test]
fn a_wrong_configuration_is_told_whole_and_nothing_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let [(_held, cluster), (_also_held, status)] = free_addresses();
    let (data, socket) = (folder.path().join("data"), folder.path().join("operator.sock"));
    let text = format!(
        r#"replica = {{ name = "db-0", data_dir = {data:?} }}
status.listen = "{status}"
operator.socket = {socket:?}
metadata.endpoint = "http://127.0.0.1:1"
policy.margn = "1s"

[cluster]
listen = "{cluster}"

[cluster.tls]
cert = "/c.pem"

[[workload]]
name = "w"
role = {{ http = "ftp://127.0.0.1:1/" }}

[[workload.hook]]
phase = "drain"
http = "http://127.0.0.1:1/"

[[workload.hook]]
phase = "restore"
command = ["/bin/true"]
confirm = "http://127.0.0.1:1/"
"#
    );
    let path = written(folder.path(), &text);
    let output = allclear(&["run", "--config", &path], &[]);
    let expected = format!(
        "{path}:5:8: `policy.margn` is not a known key: did you mean `margin`?
{path}:10:10: `cluster.tls.ca` is missing: the file of the cluster's authority, in PEM
{path}:10:10: `cluster.tls.key` is missing: the file of its private key, in PEM
{path}:15:17: `workload.role.http` is \"ftp://127.0.0.1:1/\": the address has to begin with https:// or http://
{path}:24:11: `workload.hook.confirm` is an address: write {{ http = \"…\" }}
"
    );
    assert_eq!((stderr(&output), stdout(&output), output.status.code()), (expected.as_str(), "", Some(2)));
    // with both addresses taken, any attempt to listen would be reported
    let taken = [cluster, status].map(|address| TcpListener::bind(address).unwrap());
    let again = allclear(&["run", "--config", &path], &[]);
    assert_eq!((stderr(&again), again.status.code()), (expected.as_str(), Some(2)));
    drop(taken);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["allclear.toml"], "no data directory and no socket");
}
