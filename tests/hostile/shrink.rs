//! Removes the parts that a failure does not need.

/// The shortest failing list found: without any further element the list does not fail.
pub(crate) fn shrunk<T: Clone>(mut failing: Vec<T>, fails: impl Fn(&[T]) -> bool) -> Vec<T> {
    let mut size = failing.len().div_ceil(2);
    loop {
        let mut at = 0;
        while at < failing.len() {
            let end = (at + size).min(failing.len());
            let without = [&failing[..at], &failing[end..]].concat();
            if fails(&without) {
                failing = without;
            } else {
                at = end;
            }
        }
        if size <= 1 {
            return failing;
        }
        size = size.div_ceil(2);
    }
}

#[test]
fn only_what_a_failure_needs_is_left() {
    let fails = |list: &[i32]| list.contains(&3) && list.contains(&70);
    assert_eq!(shrunk((0..100).collect(), fails), [3, 70]);
}
