//! Scenarios: each runs to its end, in virtual time and over HTTP; and all mistakes in a file are reported.

use std::num::NonZeroU32;

use allclear::core::model::id::{EventId, VmName};
use allclear::core::model::time::Timestamp;
use allclear::fake_cloud::{CloudScenario, Options, SCENARIOS};
use allclear_sim::cloud::{Approver, Cloud, EventEnd, PlatformBehaviour, PlatformOccurrence, PlatformStartCause, Vm};
use serde_json::Value;

use crate::fake_cloud::stage::Stage;

const BEGIN: Timestamp = Timestamp(1_700_000_000_000);

struct Played {
    cloud: Cloud,
    ids: Vec<EventId>,
    steps: usize,
}

/// Runs a scenario to its end in virtual time; `approves` is true if a VM approves every event.
fn play(scenario: &CloudScenario, approves: bool) -> Played {
    let vms = ["db-0", "db-1", "db-2"].map(VmName::new);
    let of_name = |name: &VmName| Vm { name: name.clone(), zone: None };
    let mut cloud = Cloud::new(vms.iter().map(of_name), PlatformBehaviour::default(), 7, BEGIN);
    let ids = scenario.begin(&mut cloud, &vms, NonZeroU32::MIN, BEGIN).unwrap();
    let mut steps = 0;
    while let Some(at) = cloud.next_change() {
        steps += 1;
        assert!(steps < 1_000, "{} never ends", scenario.name());
        cloud.advance(at);
        let open: Vec<EventId> = cloud.poll(at, &vms[2]).unwrap().events.into_iter().map(|event| event.id).collect();
        for id in open.into_iter().filter(|_| approves) {
            cloud.approve(at, Approver::Vm(vms[2].clone()), &id);
        }
    }
    Played { cloud, ids, steps }
}

#[test]
fn every_scenario_plays_to_its_end_approved_or_not() {
    for (name, _) in SCENARIOS {
        let scenario = CloudScenario::find(name).unwrap();
        assert!(!scenario.about().is_empty(), "{name}");
        for approves in [true, false] {
            let played = play(&scenario, approves);
            assert!(!played.ids.is_empty() && played.steps > 0, "{name}");
            for id in &played.ids {
                assert!(played.cloud.event(id).is_some_and(|event| event.ended.is_some()), "{name}: {id} is open");
            }
        }
    }
}

/// The start cause and the end of each event of a scenario.
fn told(name: &str, approves: bool) -> Vec<(Option<PlatformStartCause>, EventEnd)> {
    let played = play(&CloudScenario::find(name).unwrap(), approves);
    let event = |id| played.cloud.event(id).unwrap();
    let how = |id| (event(id).started.map(|(_, cause)| cause), event(id).ended.unwrap().1);
    played.ids.iter().map(how).collect()
}

#[test]
fn scenarios_are_what_their_names_say() {
    use PlatformStartCause::{Approved, Failure, NotBefore};
    for name in [
        "live-migration",
        "host-maintenance",
        "user-reboot",
        "user-redeploy",
        "redeploy",
        "preempt",
        "two-vms-one-event",
    ] {
        assert_eq!(told(name, true), [(Some(Approved), EventEnd::Finished)], "{name}");
        assert_eq!(told(name, false), [(Some(NotBefore), EventEnd::Finished)], "{name}");
    }
    for approves in [true, false] {
        assert_eq!(told("canceled-maintenance", approves), [(None, EventEnd::Cancelled)]);
        assert_eq!(told("hardware-failure", approves), [(Some(Failure), EventEnd::Finished)]);
    }
    assert_eq!(told("degraded-hardware", false), [(Some(Failure), EventEnd::Finished)]);
    assert_eq!(told("wave", true), [(Some(Approved), EventEnd::Finished); 3]);
    assert_eq!(told("terminate", true), [(Some(Approved), EventEnd::Finished); 2]);
}

#[test]
fn a_wave_takes_one_vm_after_the_other() {
    let played = play(&CloudScenario::find("wave").unwrap(), true);
    let mut open = 0;
    for happening in played.cloud.history() {
        match happening.what {
            PlatformOccurrence::Announced => open += 1,
            PlatformOccurrence::Ended(_) => open -= 1,
            PlatformOccurrence::Moved { .. }
            | PlatformOccurrence::Amended(_)
            | PlatformOccurrence::Accepted(_)
            | PlatformOccurrence::Started(_) => {}
        }
        assert!(open <= 1, "two at once: {happening:?}");
    }
}

#[test]
fn every_mistake_in_a_file_is_told_with_its_place() {
    let text = r#"
        about = "wrong in many ways"
        [[event]]
        type = "Reboot"
        vms = [0]
        [[event]]
        name = "b"
        at = "soon"
        type = "Reboot"
        vms = [0]
        [[event]]
        name = "c"
        at = "1s"
        after = { event = "nobody" }
        type = ""
        vms = []
        duration_s = -2
        [[event]]
        at = "1s"
        type = "Reboot"
        vms = [0]
        notise = "1s"
    "#;
    let said = CloudScenario::parse("mine.toml", text).unwrap_err().to_string();
    for part in [
        "mine.toml",
        "event 1: the event has no time",
        "event 2 (b):",
        "\"soon\" is no length of time",
        "event 3 (c): vms: 0 VMs",
        "event 3 (c): type: must have 1 to 128 characters",
        "duration_s: -2 is impossible",
        "at and after exclude each other",
        "no event above has the name \"nobody\"",
        "event 4: unknown field `notise`",
    ] {
        assert!(said.contains(part), "{part} is not in:\n{said}");
    }
    assert!(CloudScenario::parse("x", "about = ").unwrap_err().to_string().contains("line 1"));
    assert!(CloudScenario::parse("x", "about = \"nothing\"").unwrap_err().to_string().contains("0 [[event]] tables"));
    assert!(CloudScenario::parse("x", &"#".repeat(70_000)).unwrap_err().to_string().contains("larger"));
}

#[test]
fn scenarios_are_found_by_name_or_path() {
    let said = CloudScenario::find("user-reboott").unwrap_err().to_string();
    assert!(said.contains("did you mean user-reboot?") && said.contains("live-migration"), "{said}");
    assert!(CloudScenario::find("/nowhere/x.toml").unwrap_err().to_string().contains("/nowhere/x.toml"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "about = \"mine\"\n[[event]]\nat = \"1s\"\ntype = \"Freeze\"\nvm = \"elsewhere\"\n").unwrap();
    let found = CloudScenario::find(path.to_str().unwrap()).unwrap();
    assert_eq!((found.about(), found.needs()), ("mine", 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_served_scenario_says_when_it_is_over() {
    let speed = NonZeroU32::new(600).unwrap();
    let scenario = Some(CloudScenario::find("wave").unwrap());
    let stage = Stage::with(Options { speed, scenario, ..Options::new(["a", "b", "c"]) }).await;
    assert!(!stage.cloud.is_over());
    assert_eq!(stage.cloud.scenario_events().len(), 3);
    let is_over = |state: &Value| {
        let events = state["events"].as_array().unwrap();
        events.len() == 3 && events.iter().all(|event| event["status"] == "Finished")
    };
    stage.until("/state", "the end", is_over).await;
    assert!(stage.cloud.is_over());
    stage.cloud.play(&CloudScenario::find("preempt").unwrap()).unwrap();
    assert!(!stage.cloud.is_over(), "another one is under way");
    stage.cloud.shutdown().await;
}
