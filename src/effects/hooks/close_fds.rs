//! Closes the file descriptors inherited by a process of this program.

use std::fs;

use nix::unistd::close;

/// Closes every descriptor except 0, 1 and 2. For a process without open files of its own.
pub fn close_descriptors() {
    let numbers = fs::read_dir("/proc/self/fd").into_iter().flatten();
    let numbers = numbers.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok());
    let inherited: Vec<_> = numbers.filter(|number| *number > 2).collect();
    for number in inherited {
        // The directory listing had a descriptor too, which is closed already.
        let _ = close(number);
    }
}
