//! The outcome of a hook from its exit status (`deploy/docs/hooks.md`, Answer).

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::hooks::contract::exit;
use crate::hooks::{HookOutcome, HttpHook};

/// What the processes of an attempt do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Work {
    /// The hook, or its undo.
    Action,
    /// The question whether the hook is done, which changes nothing.
    Question,
}

/// The outcome of a hook that ended without a cancellation. A signal of another sender, such as the shutdown of the VM or
/// the kernel without memory, ended an action half way: only `confirm` can tell what was done. A question has failed.
pub(super) fn verdict(status: io::Result<ExitStatus>, last_complaint: &str, work: Work) -> HookOutcome {
    let status = match status {
        Ok(status) => status,
        Err(error) => return HookOutcome::Unknown(format!("the exit status of the hook is not available: {error}")),
    };
    match (status.code().and_then(|code| u8::try_from(code).ok()), status.signal()) {
        (Some(exit::DONE), _) => HookOutcome::Done,
        (Some(exit::NOT_APPLICABLE), _) => HookOutcome::NotApplicable,
        (Some(exit::NOT_DONE), _) => HookOutcome::NotDone,
        (Some(exit::UNKNOWN), _) => HookOutcome::Unknown(or(last_complaint, "the hook reports an unknown outcome")),
        (Some(exit::BLOCKED), _) => {
            HookOutcome::Blocked(or(last_complaint, "exit status 75, nothing on standard error"))
        }
        (Some(code @ (exit::KILLED | exit::TERMINATED)), _) => killed(i32::from(code) - 128, last_complaint, work),
        (Some(code), _) => {
            HookOutcome::Failed(or(last_complaint, &format!("exit status {code}, nothing on standard error")))
        }
        (None, Some(number)) => killed(number, last_complaint, work),
        (None, None) => HookOutcome::Unknown(format!("the hook ended with an unknown status: {status}")),
    }
}

fn killed(signal: i32, last_complaint: &str, work: Work) -> HookOutcome {
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    let said = if last_complaint.is_empty() { String::new() } else { format!(": {last_complaint}") };
    half_way(work, format!("killed by {name}{said}"))
}

fn half_way(work: Work, why: String) -> HookOutcome {
    match work {
        Work::Action => HookOutcome::Unknown(why),
        Work::Question => HookOutcome::Failed(why),
    }
}

/// The outcome of a hook whose supervisor received SIGTERM without a cancellation. The sender may have ended the hook
/// too, so the exit status of the hook is no answer.
pub(super) fn of_foreign_signal(work: Work) -> HookOutcome {
    half_way(work, "SIGTERM ended the hook without a cancellation, as at a shutdown of the VM".to_owned())
}

/// The outcome of a cancelled hook after the end of its processes. Behind an HTTP hook a server does the work, so only
/// the end of the hook's own process tells whether the server has stopped. Any hook may say that it does not know.
pub(super) fn of_cancelled(argv: &[String], status: Option<ExitStatus>, last_complaint: &str) -> HookOutcome {
    let code = status.and_then(|status| u8::try_from(status.code()?).ok());
    // Without a handler for SIGTERM, the process had sent no request, or only reads.
    let is_terminated =
        code == Some(exit::TERMINATED) || status.is_some_and(|status| status.signal() == Some(Signal::SIGTERM as i32));
    if code != Some(exit::UNKNOWN) && (is_terminated || !HttpHook::is_made_of(argv)) {
        return HookOutcome::Cancelled;
    }
    // Only an action is behind a server: the answer to a cancelled question counts no more.
    verdict(status.ok_or_else(|| io::Error::other("the process has not ended")), last_complaint, Work::Action)
}

fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise } else { text }.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cancelled(argv: &[String], raw: i32) -> HookOutcome {
        of_cancelled(argv, Some(ExitStatus::from_raw(raw)), "")
    }

    #[test]
    fn an_action_that_a_signal_ends_is_in_doubt_and_a_question_has_failed() {
        for raw in [9, 11, 15, 137 << 8, 143 << 8] {
            let ended = |work| verdict(Ok(ExitStatus::from_raw(raw)), "", work);
            assert!(matches!(ended(Work::Action), HookOutcome::Unknown(_)), "{raw}");
            assert!(matches!(ended(Work::Question), HookOutcome::Failed(_)), "{raw}");
        }
        for work in [Work::Action, Work::Question] {
            assert!(matches!(verdict(Ok(ExitStatus::from_raw(13 << 8)), "", work), HookOutcome::Unknown(_)));
        }
    }

    #[test]
    fn a_cancelled_command_has_stopped_unless_it_says_that_it_does_not_know() {
        let command = ["/bin/sh".to_owned()];
        for raw in [0, 1 << 8, 75 << 8, 143 << 8, 15, 9] {
            assert_eq!(cancelled(&command, raw), HookOutcome::Cancelled, "{raw}");
        }
        assert!(matches!(cancelled(&command, 13 << 8), HookOutcome::Unknown(_)));
    }

    #[test]
    fn a_cancelled_http_hook_has_stopped_only_if_its_own_process_says_so() {
        let hook = HttpHook::at("http://127.0.0.1/").command();
        for raw in [143 << 8, 15] {
            assert_eq!(cancelled(&hook, raw), HookOutcome::Cancelled, "{raw}");
        }
        assert_eq!(cancelled(&hook, 0), HookOutcome::Done, "the hook ended before the signal");
        for raw in [13 << 8, 9] {
            assert!(matches!(cancelled(&hook, raw), HookOutcome::Unknown(_)), "{raw}");
        }
        assert!(matches!(of_cancelled(&hook, None, ""), HookOutcome::Unknown(_)));
    }
}
