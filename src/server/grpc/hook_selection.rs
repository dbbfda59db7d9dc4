//! The hook of an event that an operator names.

use tonic::Status;

use crate::replica::clock::rfc3339;
use allclear_core::model::command::bounded;
use allclear_core::model::event::Event;
use allclear_core::model::id::VmName;
use allclear_core::model::state::State;
use allclear_core::model::workload::Phase;
use allclear_core::schedule::required;
use allclear_core::schedule::restore;
use allclear_core::schedule::step::Step;

/// Finds the one hook of this name that the event still requires.
pub(super) fn hook_named<'a>(state: &'a State, event: &'a Event, given: &str) -> Result<(String, Step<'a>), Status> {
    if !is_hook(given) {
        let form = "write WORKLOAD/PHASE or VM/WORKLOAD/PHASE, with the number or the name after # if need be";
        return Err(Status::invalid_argument(format!("hook: {:?} is not the name of a hook: {form}", bounded(given))));
    }
    let steps = required::required_steps(state, event).into_iter();
    let mut named: Vec<(String, Step<'_>)> = steps.map(|step| (state.hook_name(&step.member, step.id), step)).collect();
    let all: Vec<String> = named.iter().map(|(name, _)| name.clone()).collect();
    let number = |step: &Step<'_>| state.hook_number(&step.member, step.id);
    let is_it = |(name, step): &(String, Step<'_>)| is_called(name, given) || is_called(&number(step), given);
    let is_exactly =
        |(name, step): &(String, Step<'_>)| [name.clone(), number(step)].iter().any(|it| is_name(it, given));
    let has_exact = named.iter().any(is_exactly);
    named.retain(|it| if has_exact { is_exactly(it) } else { is_it(it) });
    let list = |names: Vec<String>| if names.is_empty() { "none".into() } else { names.join(", ") };
    match named.len() {
        1 => Ok(named.remove(0)),
        0 => {
            if let Some(message) = retried_by_itself(state, event, given) {
                return Err(Status::failed_precondition(message));
            }
            let message = format!(
                "event {} needs no hook {given:?}; the hooks of this event are: {}",
                event.announcement.id,
                list(all)
            );
            Err(Status::failed_precondition(message))
        }
        _ => {
            let choices = list(named.into_iter().map(|(name, _)| name).collect());
            Err(Status::failed_precondition(format!("{given:?} matches more than one hook; name one of: {choices}")))
        }
    }
}

/// Whether a text can name a hook of any event.
fn is_hook(given: &str) -> bool {
    let path = given.split_once('#').map_or(given, |(path, _)| path);
    path.rsplit_once('/')
        .is_some_and(|(member, phase)| !member.is_empty() && Phase::parse(&phase.to_ascii_lowercase()).is_some())
}

/// The answer about a `restore` or `ready` hook. allclear repeats such a hook until success, so an operator neither
/// retries nor skips the hook.
fn retried_by_itself(state: &State, event: &Event, given: &str) -> Option<String> {
    let steps = restore::restore_steps(state, event);
    let found = steps.iter().find(|step| is_called(&state.hook_name(&step.member, step.id), given))?;
    let (name, member) = (state.hook_name(&found.member, found.id), found.member.path());
    let next = restore::retried_at(state, &found.member);
    let next = next.map_or_else(String::new, |at| format!(", next at {}", rfc3339(at)));
    Some(format!(
        "allclear runs {name} by itself until it succeeds{next}: repair the cause of a failure; if the member serves \
         already, run `allclear workload restored {member} --reason TEXT`"
    ))
}

/// Compares names; the VM may be left out.
fn is_name(name: &str, given: &str) -> bool {
    let (vm, without_vm) = name.split_once('/').unwrap_or(("", name));
    let is_with_vm = given.split_once('/').is_some_and(|(given_vm, rest)| {
        VmName::new(vm) == VmName::new(given_vm) && without_vm.eq_ignore_ascii_case(rest)
    });
    is_with_vm || without_vm.eq_ignore_ascii_case(given)
}

/// Compares names; the hook's own name or its number after the phase may be left out as well.
fn is_called(name: &str, given: &str) -> bool {
    is_name(name, given) || name.rsplit_once('#').is_some_and(|(name, _)| is_name(name, given))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hook_may_be_called_without_its_vm_and_without_its_number() {
        for given in [
            "db-0/postgres/drain#2",
            "DB-0/postgres/drain",
            "_db-0/postgres/drain",
            "postgres/drain#2",
            "postgres/drain",
        ] {
            assert!(is_called("db-0/postgres/drain#2", given), "{given}");
        }
        for given in ["postgres", "drain", "db-1/postgres/drain", "postgres/drain#3", ""] {
            assert!(!is_called("db-0/postgres/drain#2", given), "{given}");
        }
    }

    #[test]
    fn a_text_without_a_phase_names_no_hook_of_any_event() {
        for given in ["db-0/postgres/drain#2", "postgres/Drain", "postgres/drain#by-name"] {
            assert!(is_hook(given), "{given}");
        }
        for given in ["nonsense", "", "drain", "/drain", "postgres/rest", "db-0/postgres#drain"] {
            assert!(!is_hook(given), "{given}");
        }
    }
}
