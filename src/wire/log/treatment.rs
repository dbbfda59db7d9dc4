//! Treatments.

use super::pb;
use super::stored::Stored;
use super::tables::{message, numbered, store, take};
use super::undecodable::{DecodeFault, Undecodable};
use allclear_core::model::treatment::{Action, Opening, Treatment};

message!(Treatment as Treatment {
    action: action,
    rule: rule,
    phases: phases,
    budget: budget_ms,
    ahead: ahead_ms,
    opening: opening,
    missed: missed,
    only_named_freezes: only_named_freezes,
    margin: margin_ms,
    give_back_after: give_back_after_ms,
    last_call: last_call_ms,
    repost_after: repost_after_ms,
});

message!(Opening as Opening { opens: opens_unix_ms, closes: closes_unix_ms });

numbered!(Action as Action { Prepare, Approve, Observe });
