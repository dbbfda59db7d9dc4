//! Memory use of this suite. One limit for everything, half of which the generators of messages use; unbounded growth
//! is far beyond the limit.

const MOST: usize = 2 << 30;

/// Checks the peak memory.
pub(crate) fn is_bounded() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let held: usize = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(held << 10 < MOST, "{held} kB of memory were held at once");
}
