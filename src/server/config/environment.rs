//! Reads the environment. No other file of the program does; the values are passed on as arguments.

use std::ffi::OsString;

/// The default of `ALLCLEAR_LOG`. openraft logs every vote and heartbeat at `info`, every failed call at `warn`, and every
/// call that a stop interrupts at `error`. `consensus` logs each change once, and the reason if consensus fails.
const LOG_DEFAULT: &str = "info,openraft=off";

/// Every variable of this process. Invalid text is replaced by marks, and becomes a mistake where used.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |bytes: OsString| bytes.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// The log filter (`ALLCLEAR_LOG`, else `RUST_LOG`): levels, optionally by target, separated by commas.
pub fn log_filter() -> String {
    let set = |name| std::env::var(name).ok().filter(|filter| !filter.trim().is_empty());
    set("ALLCLEAR_LOG").or_else(|| set("RUST_LOG")).unwrap_or_else(|| LOG_DEFAULT.to_owned())
}

/// The environment variable with the operator socket that commands use.
pub const ENDPOINT: &str = "ALLCLEAR_ENDPOINT";

/// The operator socket of the environment, for commands without `--endpoint`.
pub fn endpoint() -> Option<String> {
    std::env::var(ENDPOINT).ok()
}

/// The name of the person at the terminal; under `sudo` the name of the person who called it. A question to a directory
/// service may take minutes when the network is down, so only the environment is read.
pub fn login_name() -> Option<String> {
    ["SUDO_USER", "LOGNAME", "USER"].into_iter().find_map(|name| std::env::var(name).ok())
}

/// True if `NO_COLOR` is set to a non-empty value.
pub fn colours_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
