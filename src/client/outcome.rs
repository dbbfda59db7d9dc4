//! The outcome of an attempt.

use std::fmt::Display;

use allclear_wire::pb::allclear::workload::v1;
use allclear_wire::pb::allclear::workload::v1::outcome::Variant;

/// Texts are cut to this number of bytes.
const LONGEST_TEXT: usize = 512;

/// The answer of a handler. `()` means done, and an error failed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The effect of the hook is present.
    Done,
    /// The hook has nothing to do on this member.
    NotApplicable,
    /// An answer to confirm: the effect of the hook is absent.
    NotDone,
    /// The hook failed, with the reason; it is tried again until its `attempts` are used.
    Failed(String),
    /// Nothing was begun; try again later. With the reason.
    Blocked(String),
    /// The attempt was stopped, after `Step::cancelled`, and nothing of it runs any more. At its deadline the attempt
    /// counts as timed out. Earlier, and without a cancellation, the hook has failed and is not tried again; only
    /// `restore` and `ready` hooks run again.
    Cancelled,
    /// The workload cannot know the outcome. A confirm decides; without one the hook runs again, except a failover. With
    /// the reason.
    Unknown(String),
    /// The step's fence is lower than a known fence. Only this library answers `Stale`.
    Stale,
}

impl Outcome {
    /// An answer to confirm.
    pub fn done_if(is_done: bool) -> Self {
        if is_done { Self::Done } else { Self::NotDone }
    }

    /// The word, and the reason where the outcome has a reason.
    pub(super) fn in_words(&self) -> (&'static str, Option<&str>) {
        match self {
            Self::Done => ("done", None),
            Self::NotApplicable => ("not_applicable", None),
            Self::NotDone => ("not_done", None),
            Self::Failed(reason) => ("failed", Some(reason)),
            Self::Blocked(reason) => ("blocked", Some(reason)),
            Self::Cancelled => ("cancelled", None),
            Self::Unknown(reason) => ("unknown", Some(reason)),
            Self::Stale => ("stale", None),
        }
    }

    pub(super) fn from_words(word: &str, reason: Option<String>) -> Option<Self> {
        let reason = reason.unwrap_or_default();
        Some(match word {
            "done" => Self::Done,
            "not_applicable" => Self::NotApplicable,
            "not_done" => Self::NotDone,
            "failed" => Self::Failed(reason),
            "blocked" => Self::Blocked(reason),
            "cancelled" => Self::Cancelled,
            "unknown" => Self::Unknown(reason),
            "stale" => Self::Stale,
            _ => return None,
        })
    }

    pub(super) fn told(&self) -> v1::Outcome {
        let nothing = v1::Nothing {};
        let variant = match self {
            Self::Done => Variant::Done(nothing),
            Self::NotApplicable => Variant::NotApplicable(nothing),
            Self::NotDone => Variant::NotDone(nothing),
            Self::Failed(reason) => Variant::Failed(reason.clone()),
            Self::Blocked(reason) => Variant::Blocked(reason.clone()),
            Self::Cancelled => Variant::Cancelled(nothing),
            Self::Unknown(reason) => Variant::Unknown(reason.clone()),
            Self::Stale => Variant::Stale(nothing),
        };
        v1::Outcome { variant: Some(variant) }
    }

    pub(super) fn cut(self) -> Self {
        match self {
            Self::Failed(reason) => Self::Failed(cut(&reason).to_owned()),
            Self::Blocked(reason) => Self::Blocked(cut(&reason).to_owned()),
            Self::Unknown(reason) => Self::Unknown(cut(&reason).to_owned()),
            other => other,
        }
    }
}

impl From<()> for Outcome {
    fn from((): ()) -> Self {
        Self::Done
    }
}

impl<O: Into<Self>, E: Display> From<Result<O, E>> for Outcome {
    fn from(result: Result<O, E>) -> Self {
        result.map_or_else(|error| Self::Failed(error.to_string()), Into::into)
    }
}

pub(super) fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST_TEXT)]
}

#[test]
fn a_reason_is_cut_between_letters() {
    let long = "ä".repeat(LONGEST_TEXT);
    let Outcome::Failed(reason) = Outcome::Failed(format!("x{long}")).cut() else { panic!("another outcome") };
    assert_eq!((reason.len(), reason.chars().last()), (LONGEST_TEXT - 1, Some('ä')));
    assert_eq!(Outcome::from(Err::<(), _>("why")), Outcome::Failed("why".into()));
}
