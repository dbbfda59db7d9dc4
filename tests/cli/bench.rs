//! The benchmarks: each figure has a unit and a lower bound, and each measured value is plausible.

use serde_json::Value;

use super::{allclear, stage, stderr, stdout, whole_stage};

#[test]
fn what_an_idle_cluster_costs_is_told_with_the_floor_of_each_figure() {
    let _stage = stage();
    let output = allclear(&["bench", "--only", "idle", "--seconds", "2", "--json"], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Vec<Value> = serde_json::from_str(stdout(&output)).unwrap();
    let told = |name: &str| {
        let figure =
            figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{name}: {figures:#?}"));
        assert!(figure["unit"].is_string() && !figure["floor_is"].as_str().unwrap().is_empty(), "{figure}");
        ["median", "p99", "worst", "floor"].map(|of| figure[of].as_f64().unwrap())
    };
    for name in ["idle leader, processor time", "idle follower, processor time"] {
        let [median, p99, worst, floor] = told(name);
        assert!(0.0 < floor && floor < 100.0 && 0.0 <= median && median <= p99 && p99 <= worst, "{name}: {figures:#?}");
    }
    let [polls, .., wanted] = told("idle replica, requests to the metadata service");
    assert!(polls > 0.0 && wanted > 0.0, "{figures:#?}");
    // Only root can read the memory use of a process.
    if nix::unistd::geteuid().is_root() {
        let [resident, .., floor] = told("idle replica, resident in proportion");
        assert!(resident > floor && floor > 0.0, "{figures:#?}");
        assert_eq!(told("idle replica, written")[3].to_bits(), 0.0_f64.to_bits());
    }
}

#[test]
fn a_claim_outlives_the_leader() {
    crate::left_out::long!();
    let _stage = stage();
    let output = allclear(&["bench", "--only", "claims", "--events", "1", "--json"], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Vec<Value> = serde_json::from_str(stdout(&output)).unwrap();
    let name = "leader killed in mid-claim, to another's POST";
    let figure = figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{figures:#?}"));
    let [median, floor] = ["median", "floor"].map(|of| figure[of].as_f64().unwrap());
    assert!(median > 0.0 && floor > 0.0, "{figures:#?}");
}

/// Two of the replicas do not vote.
#[test]
fn many_replicas_approve_though_one_is_lost() {
    crate::left_out::long!();
    let _stage = whole_stage();
    let output =
        allclear(&["bench", "--only", "many", "--replicas", "9", "--events", "1", "--seconds", "1", "--json"], &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let figures: Vec<Value> = serde_json::from_str(stdout(&output)).unwrap();
    for name in ["9 replicas, announcement to POST", "9 replicas, the same while one is lost"] {
        let figure = figures.iter().find(|figure| figure["name"] == name).unwrap_or_else(|| panic!("{figures:#?}"));
        let [median, floor] = ["median", "floor"].map(|of| figure[of].as_f64().unwrap());
        assert!(median > 0.0 && floor >= 0.0 && floor <= median, "{figures:#?}");
    }
}
