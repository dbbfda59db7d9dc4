//! The stages of an event and the one table of legal transitions (`SPEC.md` 3).

/// In the order in which an event passes through the stages; some may be left out.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Stage {
    Announced,
    Preparing,
    Claimed,
    Approved,
    Started,
    Restoring,
    Closed,
}

impl Stage {
    /// The transition table. A short cut from before `Started` to `Started` is an approval by another approver, the end
    /// of the notice or a failure of the hardware; a short cut to `Restoring` or `Closed` is an event that has left the
    /// document.
    pub const fn may_become(self, next: Self) -> bool {
        match self {
            Self::Announced => !matches!(next, Self::Announced | Self::Approved),
            Self::Preparing => matches!(next, Self::Claimed | Self::Started | Self::Restoring | Self::Closed),
            Self::Claimed => matches!(next, Self::Approved | Self::Started | Self::Restoring | Self::Closed),
            Self::Approved => matches!(next, Self::Started | Self::Restoring | Self::Closed),
            Self::Started => matches!(next, Self::Restoring | Self::Closed),
            Self::Restoring => matches!(next, Self::Closed),
            Self::Closed => false,
        }
    }

    /// The stage in which a decided, started or ended event continues when still to come: `Approved` if an approval may
    /// have been sent to the platform, and otherwise `Preparing`.
    pub const fn may_return_to(self, earlier: Self) -> bool {
        match self {
            Self::Claimed => matches!(earlier, Self::Preparing),
            Self::Started | Self::Restoring | Self::Closed => matches!(earlier, Self::Preparing | Self::Approved),
            Self::Announced | Self::Preparing | Self::Approved => false,
        }
    }

    /// The event has left the document.
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Restoring | Self::Closed)
    }
}

string_enum!(Stage {
    Announced => "announced",
    Preparing => "preparing",
    Claimed => "claimed",
    Approved => "approved",
    Started => "started",
    Restoring => "restoring",
    Closed => "closed",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_becomes_goes_on_and_what_returns_goes_back() {
        for from in Stage::ALL {
            for to in Stage::ALL {
                assert!(!from.may_become(to) || from < to, "{from} may become {to}");
                assert!(!from.may_return_to(to) || to < from, "{from} may return to {to}");
            }
        }
    }

    #[test]
    fn nothing_is_approved_without_a_claim() {
        for from in Stage::ALL {
            assert_eq!(from.may_become(Stage::Approved), from == Stage::Claimed, "{from}");
        }
    }
}
