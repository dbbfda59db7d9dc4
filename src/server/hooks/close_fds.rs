//! Closes the file descriptors that a process of this program inherited.

use std::fs;

use nix::unistd::close;

/// Closes every descriptor but the three that everybody has. For a process that has opened nothing yet.
pub fn close_descriptors() {
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let inherited: Vec<_> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // One of them was the listing, which is closed already.
        let _ = close(number);
    }
}
