//! Reads the environment. No other file of the program does; the values are passed on as arguments.

use std::ffi::OsString;

/// The default of `ALLCLEAR_LOG`: openraft tells every vote and every heartbeat at `info`, and at `warn` every call
/// that failed, of which `consensus` tells each change once.
const LOG_DEFAULT: &str = "info,openraft=error";

/// Every variable of this process. Bytes that are not text become marks, and then a mistake where they matter.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    let text = |bytes: OsString| bytes.to_string_lossy().into_owned();
    std::env::vars_os().map(move |(name, value)| (text(name), text(value)))
}

/// Which log lines are wanted (`ALLCLEAR_LOG`, else `RUST_LOG`): levels, by target where it is named, between commas.
pub fn log_filter() -> String {
    let set = |name| std::env::var(name).ok().filter(|filter| !filter.trim().is_empty());
    set("ALLCLEAR_LOG").or_else(|| set("RUST_LOG")).unwrap_or_else(|| LOG_DEFAULT.to_owned())
}

/// Whether `NO_COLOR` asks for plain text: set to anything but nothing.
pub fn colours_refused() -> bool {
    std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty())
}
