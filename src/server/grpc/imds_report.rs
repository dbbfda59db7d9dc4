//! Conversions of the health of a metadata channel, as replicas send it to each other.

use std::time::Duration;

use allclear_core::model::isolation::ImdsHealth;
use allclear_core::peer_table::ImdsReport;
use allclear_wire::pb::allclear::cluster::v1 as wire;

pub(super) fn health(told: Option<&wire::ChannelHealth>) -> ImdsReport {
    // An unknown word is no proof of health.
    let channel = match told.map(|told| told.word.as_str()) {
        Some("healthy") => ImdsHealth::Healthy,
        Some("stalled") => ImdsHealth::Stalled,
        _ => ImdsHealth::Unknown,
    };
    let document_age = told.and_then(|told| told.document_age_ms).map(Duration::from_millis);
    ImdsReport {
        health: channel,
        document_age,
        answers_in: Duration::from_millis(told.map_or(0, |told| told.answers_in_ms)),
        can_acknowledge: told.is_some_and(|told| told.can_acknowledge),
    }
}

pub(super) fn wire_health(health: ImdsReport) -> wire::ChannelHealth {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    wire::ChannelHealth {
        word: health.health.as_str().into(),
        document_age_ms: health.document_age.map(ms),
        answers_in_ms: ms(health.answers_in),
        can_acknowledge: health.can_acknowledge,
    }
}
