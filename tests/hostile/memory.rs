//! How much memory this suite takes. A whole number for all of it, of which whoever makes the messages takes half: what
//! grows without bound is far beyond it.

const MOST: usize = 2 << 30;

/// Looks at the most that was ever held.
pub(crate) fn is_bounded() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let held: usize = line.trim().strip_suffix(" kB").unwrap().parse().unwrap();
    assert!(held << 10 < MOST, "{held} kB of memory were held at once");
}
