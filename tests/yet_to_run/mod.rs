//! The last test of the program: tests begin in the order of their names.

#[test]
fn tests_that_were_left_out_are_listed_with_the_command_that_runs_them() {
    crate::left_out::print();
}
