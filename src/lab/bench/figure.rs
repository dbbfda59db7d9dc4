//! One line of the table: a measured figure beside its lower bound, from the same run on the same machine.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

/// A figure; all numbers are in `unit`.
#[derive(Serialize)]
pub(super) struct Figure {
    name: String,
    unit: &'static str,
    median: f64,
    /// The 99th percentile.
    p99: f64,
    worst: f64,
    floor: f64,
    /// Description of the lower bound.
    floor_is: &'static str,
}

impl Figure {
    pub(super) fn of(
        name: impl Into<String>,
        unit: &'static str,
        mut values: Vec<f64>,
        floors: Vec<f64>,
        floor_is: &'static str,
    ) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let p99 = values.get((values.len() * 99).div_ceil(100).saturating_sub(1)).copied().unwrap_or_default();
        let worst = values.last().copied().unwrap_or_default();
        Self { name: name.into(), unit, median: median(values), p99, worst, floor: median(floors), floor_is }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or_default()
}

/// Converts a duration to milliseconds.
pub(super) fn ms(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

pub(super) fn table(figures: &[Figure]) -> String {
    let mut text =
        format!("{:<46} {:>8} {:>8} {:>8}  {:>8}  {:<9} THE FLOOR IS\n", "", "MEDIAN", "P99", "WORST", "FLOOR", "");
    for figure in figures {
        let [median, p99, worst, floor] = [figure.median, figure.p99, figure.worst, figure.floor].map(short);
        let Figure { name, unit, floor_is, .. } = figure;
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{name:<46} {median:>8} {p99:>8} {worst:>8}  {floor:>8}  {unit:<9} {floor_is}");
    }
    text
}

/// Rounds to three digits, which are enough.
fn short(value: f64) -> String {
    let digits = match value.abs() {
        large if large >= 100.0 => 0,
        middle if middle >= 10.0 => 1,
        small if small >= 1.0 || small == 0.0 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_hundred_the_middle_one_the_last_but_one_and_the_last_are_told() {
        let figure = Figure::of("answers", "ms", (1..=100).rev().map(f64::from).collect(), vec![3.0, 1.0, 2.0], "two");
        let told = |figure: &Figure| [figure.median, figure.p99, figure.worst, figure.floor].map(short);
        assert_eq!(told(&figure), ["51.0", "99.0", "100", "2.00"]);
        let one = Figure::of("one", "ms", vec![7.0], Vec::new(), "none");
        assert_eq!(told(&one), ["7.00", "7.00", "7.00", "0.00"]);
    }

    #[test]
    fn numbers_have_three_digits() {
        assert_eq!(
            [1234.4, 99.96, 12.34, 1.234, 0.1234, 0.0].map(short),
            ["1234", "100.0", "12.3", "1.23", "0.123", "0.00"]
        );
    }
}
