//! The program: hands over to the command line.

fn main() {}
