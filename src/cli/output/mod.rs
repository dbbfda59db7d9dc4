//! The replica's answers as text for people: the most important first.

mod event;
mod events;
mod health;
mod members;
pub(super) mod moments;
pub(super) mod page;
mod status;
mod text;
mod workloads;

pub(super) use self::event::{all_open, event};
pub(super) use self::events::events;
pub(super) use self::health::{Health, health, line as health_line};
pub(super) use self::members::members;
pub(super) use self::status::status;
pub(super) use self::text::{OutputContext, sentence, summary};
pub(super) use self::workloads::workloads;
pub(super) use allclear_server::replica::view::advice::blockers;
