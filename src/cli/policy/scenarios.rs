//! Forecasts for the events of the built-in scenarios.

use allclear_core::model::document::Document;
use allclear_core::model::time::Timestamp;
use allclear_lab::fake_cloud::{CloudScenario, SCENARIOS, ScenarioError};
use allclear_server::config::Config;

use super::Case;
use super::forecast::{forecasts, members};

pub(super) fn all(config: &Config, now: Timestamp) -> Vec<Case> {
    SCENARIOS.iter().map(|(name, _)| of_scenario(config, name, now)).collect()
}

/// A case with the events of a scenario. An event that follows another event is announced when the earlier event is
/// over.
fn of_scenario(config: &Config, name: &str, now: Timestamp) -> Case {
    let found = CloudScenario::find(name).and_then(|scenario| {
        let sights = scenario.first_sights(&members(config), now);
        Ok((scenario.about().to_owned(), sights?))
    });
    let (about, skipped, sights) = match found {
        Ok((about, sights)) => (about, None, sights),
        Err(ScenarioError::TooFewVms { needs, has, .. }) => {
            let why = format!("the scenario needs {needs} VMs, and the configuration names {has}");
            (String::new(), Some(why), Vec::new())
        }
        Err(error) => (String::new(), Some(error.to_string()), Vec::new()),
    };
    let alone = |sight| forecasts(config, &Document::new(vec![sight]), now);
    Case { name: name.into(), about, skipped, events: sights.into_iter().flat_map(alone).collect() }
}
