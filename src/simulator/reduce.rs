//! Makes a scenario that fails smaller: tries it without some of what happens, as long as the same property breaks.

use super::mistake::Mistake;
use super::run;
use super::scenario::Scenario;
use super::verdict::Property;

/// Runs at the most.
const TRIES: usize = 400;

/// The places of the happenings that are needed, in their order.
pub fn reduce(scenario: &Scenario, mistake: Mistake, property: Property) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..scenario.happenings.len()).collect();
    let mut tries = 0;
    let mut fails = |places: &[usize]| {
        tries += 1;
        let breach = run(&scenario.only(places), mistake, false).breach().map(|breach| breach.property);
        (tries <= TRIES).then_some(breach == Some(property))
    };
    let mut size = kept.len().div_ceil(2);
    while size > 0 {
        let mut from = 0;
        while from < kept.len() {
            let without: Vec<usize> = [&kept[..from], &kept[(from + size).min(kept.len())..]].concat();
            match fails(&without) {
                Some(true) => kept = without,
                Some(false) => from += size,
                None => return kept,
            }
        }
        size /= 2;
    }
    kept
}
