//! Registers collectors.

use prometheus::Registry;
use prometheus::core::Collector;

pub(super) fn registered<C: Collector + Clone + 'static>(registry: &Registry, collector: C) -> prometheus::Result<C> {
    registry.register(Box::new(collector.clone()))?;
    Ok(collector)
}
