//! The outcome of a hook from its exit status (`deploy/docs/hooks.md`, Answer).

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;

use nix::sys::signal::Signal;

use crate::hooks::HookOutcome;
use crate::hooks::contract::exit;

/// The outcome of a hook that ended by itself. A signal of another sender, such as the shutdown of the VM or the
/// kernel without memory, ended the hook half way: only `confirm` can tell what was done.
pub(super) fn verdict(status: io::Result<ExitStatus>, last_complaint: &str) -> HookOutcome {
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
        (Some(code @ (exit::KILLED | exit::TERMINATED)), _) => killed(i32::from(code) - 128, last_complaint),
        (Some(code), _) => {
            HookOutcome::Failed(or(last_complaint, &format!("exit status {code}, nothing on standard error")))
        }
        (None, Some(number)) => killed(number, last_complaint),
        (None, None) => HookOutcome::Unknown(format!("the hook ended with an unknown status: {status}")),
    }
}

fn killed(signal: i32, last_complaint: &str) -> HookOutcome {
    let name = Signal::try_from(signal).map_or_else(|_| format!("signal {signal}"), |signal| signal.to_string());
    let said = if last_complaint.is_empty() { String::new() } else { format!(": {last_complaint}") };
    HookOutcome::Unknown(format!("killed by {name}{said}"))
}

/// The outcome of a hook whose supervisor received SIGTERM without a cancellation. The sender may have ended the hook
/// too, so the exit status of the hook is no answer.
pub(super) fn of_foreign_signal() -> HookOutcome {
    HookOutcome::Unknown("SIGTERM ended the hook without a cancellation, as at a shutdown of the VM".to_owned())
}

fn or(text: &str, otherwise: &str) -> String {
    if text.is_empty() { otherwise } else { text }.to_owned()
}
