//! Claim: real replicas on real sockets and a real disk do as the specification says, under kills, freezes and wrong
//! answers. The cloud is the emulator, on loopback.

mod absences;
mod answers;
mod approvers;
mod cables;
mod changed_hooks;
mod changes;
mod checks;
mod choices;
mod clocks;
pub(crate) mod cloud;
#[expect(clippy::module_inception, reason = "what the suite plays with")]
pub(crate) mod cluster;
mod cold_starts;
pub(crate) mod collector;
mod confined;
mod cuts;
mod departures;
pub(crate) mod dialled;
mod dice;
pub(crate) mod disks;
mod drills;
mod embedded;
mod empty_disks;
mod events;
mod evidence;
mod failing_hooks;
mod freezes;
mod goodbyes;
mod groups;
mod hostile_names;
mod isolated;
mod jumps;
mod last_resort;
mod late_words;
mod learners;
mod line;
pub(crate) mod links;
mod lives;
mod losses;
mod members;
mod membership;
mod missing;
mod named;
pub(crate) mod namespaces;
mod nemesis;
mod operators;
mod over_http;
mod overlaps;
mod owners;
mod pair;
pub(crate) mod plan;
mod posts;
mod readings;
pub(crate) mod resolver;
mod restoring;
pub(crate) mod said;
mod second_approvers;
mod sessions;
mod severed;
mod shown;
mod strangers;
mod thaws;
mod tokens;
mod traces;
mod trial;
mod unmoved;
mod versions;
mod waves;
pub(crate) mod workload;

use crate::workloads::server;

/// This test and the next are here for their names: tests begin in the order of names, and these two take longest.
#[tokio::test]
async fn a_failover_has_its_effect_once_and_its_event_one_all_clear_whatever_is_lost() {
    crate::left_out::long!();
    trial::play().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nemesis_breaks_no_promise_and_everything_comes_right_in_the_end() {
    crate::left_out::long!();
    nemesis::play().await;
}
