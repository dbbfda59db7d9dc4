//! The gauges of one scrape.

use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, IntCounterVec, Opts, Registry};

#[derive(Default)]
pub(super) struct Exposition(Registry);

impl Exposition {
    pub(super) fn one(&self, name: &str, help: &str, value: f64) -> prometheus::Result<()> {
        let gauge = Gauge::new(name, help)?;
        gauge.set(value);
        self.0.register(Box::new(gauge))
    }

    pub(super) fn whether(&self, name: &str, help: &str, is_so: bool) -> prometheus::Result<()> {
        self.one(name, help, f64::from(u8::from(is_so)))
    }

    /// Adds one gauge with a value for each value of the label.
    pub(super) fn each<'a>(
        &self,
        name: &str,
        help: &str,
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> prometheus::Result<()> {
        let gauges = GaugeVec::new(Opts::new(name, help), &[label])?;
        for (of, value) in values {
            gauges.get_metric_with_label_values(&[of])?.set(value);
        }
        self.0.register(Box::new(gauges))
    }

    /// Adds counters maintained elsewhere, one count for each value of the label.
    pub(super) fn counted(
        &self,
        name: &str,
        help: &str,
        label: &str,
        counts: impl IntoIterator<Item = (&'static str, u64)>,
    ) -> prometheus::Result<()> {
        let counters = IntCounterVec::new(Opts::new(name, help), &[label])?;
        for (of, count) in counts {
            counters.get_metric_with_label_values(&[of])?.inc_by(count);
        }
        self.0.register(Box::new(counters))
    }

    pub(super) fn gather(&self) -> Vec<MetricFamily> {
        self.0.gather()
    }
}

/// A count as the float of a metric.
#[allow(clippy::cast_precision_loss, reason = "nothing here is counted that far")]
pub(super) fn number(of: usize) -> f64 {
    of as f64
}
