//! The program: hands over to the command line.

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(command), Some(folder)) if command == "supervise" => allclear::workloads::supervise(Path::new(&folder)),
        (Some(_) | None, _) => ExitCode::SUCCESS,
    }
}
