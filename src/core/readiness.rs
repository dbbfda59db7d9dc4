//! Whether a workload serves (`SPEC.md` 8, R10), from consecutive answers.

use crate::model::workload::Readiness;

/// The last answer of a workload.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ReadinessHistory {
    last: Option<bool>,
}

impl ReadinessHistory {
    /// Two equal consecutive answers decide, in both directions. A missing answer counts as "not ready".
    pub fn hear(&mut self, is_ready: bool) -> Option<Readiness> {
        let is_repeated = self.last.replace(is_ready) == Some(is_ready);
        is_repeated.then_some(if is_ready { Readiness::Ready } else { Readiness::NotReady })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_in_a_row_decide_in_both_directions() {
        let mut answers = ReadinessHistory::default();
        let heard = [true, true, false, true, false, false, false, true, true].map(|is_ready| answers.hear(is_ready));
        let (ready, not) = (Some(Readiness::Ready), Some(Readiness::NotReady));
        assert_eq!(heard, [None, ready, None, None, None, not, not, None, ready]);
    }
}
