//! Stored values can be read back: by this version, by every later version, and never by guessing.

mod golden;
mod hostile;
mod record;
mod refusals;
mod samples;
mod seals;
mod snapshots;
mod values;
