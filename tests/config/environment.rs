//! Overrides of the configuration by the environment.

use std::time::Duration;

use super::{read, read_with};

const THREE: &str = r#"
[replica]
name = "db-0"
data_dir = "/d"

[cluster]
name = "orders"
replicas = { db-2 = "127.0.0.1:3", db-0 = "127.0.0.1:1", db-1 = "127.0.0.1:2" }
insecure = true
"#;

#[test]
fn a_variable_wins_over_the_file_and_over_the_default() {
    let environment = [
        ("ALLCLEAR__REPLICA__NAME", "db-1"),
        ("ALLCLEAR__POLICY__MARGIN", "3s"),
        ("ALLCLEAR__CLUSTER__MAX_VOTERS", "5"),
        ("ALLCLEAR__WORKLOADS__ALLOW_UIDS", "[1000, 1001]"),
    ];
    let config = read_with(THREE, &environment).unwrap();
    assert_eq!(config.replica.name.unwrap().as_str(), "db-1");
    assert_eq!(config.policy.margin, Duration::from_secs(3));
    assert_eq!(config.cluster.max_voters, 5);
    assert_eq!(config.registration.allow_uids, [1000, 1001]);
}

#[test]
fn a_text_needs_no_quotes_even_where_it_looks_like_a_number_or_a_date() {
    let environment = [("ALLCLEAR__CLUSTER__NAME", "7"), ("ALLCLEAR__METADATA__API_VERSION", "2019-08-01")];
    let config = read_with(THREE, &environment).unwrap();
    let version = config.metadata.api_version.to_string();
    assert_eq!((config.cluster.name.as_str(), version.as_str()), ("7", "2019-08-01"));
}

#[test]
fn the_environment_alone_is_enough() {
    let config = read_with("", &[("ALLCLEAR__REPLICA__DATA_DIR", "/d")]).unwrap();
    assert_eq!(config.replica.data_dir, std::path::Path::new("/d"));
}

#[test]
fn a_mistake_of_the_environment_names_the_variable_and_comes_after_those_of_the_file() {
    let text = format!("{THREE}max_voters = 0\n");
    let environment = [
        ("ALLCLEAR__METADATA__POL_INTERVAL", "1s"),
        ("ALLCLEAR__REPLICA__NAME__FIRST", "x"),
        ("ALLCLEAR__POLICY__MARGIN", "soon"),
        ("ALLCLEAR__", "x"),
        ("ALLCLEAR__A__B__C__D__E__F__G__H__I", "x"),
        ("ALLCLEAR_LOG", "debug"),
    ];
    let said = read_with(&text, &environment).unwrap_err().to_string();
    let expected = r#"allclear.toml:10:14: `cluster.max_voters` is 0, which is out of range: from 1 to 7
environment variable ALLCLEAR__: names no key: write ALLCLEAR__SECTION__KEY
environment variable ALLCLEAR__A__B__C__D__E__F__G__H__I: names a key that is nested too deep
environment variable ALLCLEAR__METADATA__POL_INTERVAL: `metadata.pol_interval` is not a known key: did you mean `poll_interval`?
environment variable ALLCLEAR__POLICY__MARGIN: `policy.margin` is "soon", not a duration: write a number with its unit in quotes, as "500ms", "10s", "2m" or "1h"
environment variable ALLCLEAR__REPLICA__NAME__FIRST: has one part too many: the key before __FIRST is not a table"#;
    assert_eq!(said, expected);
}

#[test]
fn the_replicas_keep_the_order_of_the_file() {
    let config = read(THREE).unwrap();
    let names: Vec<_> = config.cluster.replicas.iter().map(|peer| peer.name.as_str()).collect();
    assert_eq!(names, ["db-2", "db-0", "db-1"]);
    assert_eq!(config.cluster.listen.unwrap().to_string(), "127.0.0.1:1", "the own address where none is given");
}
