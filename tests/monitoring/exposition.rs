//! A replica's answer to a scrape, as lines with a name, labels and a value.

use std::collections::BTreeSet;

use super::cluster::Cluster;

/// One scrape.
pub(crate) struct Exposition {
    pub(crate) text: String,
}

impl Exposition {
    pub(crate) async fn of(cluster: &Cluster, place: usize) -> Self {
        let (status, text) = cluster.page(place, "/metrics").await;
        assert_eq!(status, 200, "{text}");
        Self { text }
    }

    /// The value of a series, named exactly as in the text.
    pub(crate) fn value(&self, series: &str) -> f64 {
        let value = self.samples().find(|(known, _)| *known == series).map(|(_, value)| value);
        value.unwrap_or_else(|| panic!("{series} is not there:\n{}", self.text)).parse().unwrap()
    }

    /// Every name, including the names of a histogram's parts.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        self.samples().map(|(series, _)| series.split('{').next().unwrap().to_owned()).collect()
    }

    /// Every label, with the name of its metric.
    pub(crate) fn labels(&self) -> BTreeSet<(String, String)> {
        let pairs = |series: &str| {
            let (name, rest) = series.split_once('{')?;
            let labels = rest.trim_end_matches('}').split("\",");
            let labels = labels.filter_map(|label| label.split_once('=').map(|(label, _)| label.to_owned()));
            Some(labels.map(|label| (name.to_owned(), label)).collect::<Vec<_>>())
        };
        self.samples().filter_map(|(series, _)| pairs(series)).flatten().collect()
    }

    fn samples(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.lines().filter(|line| !line.starts_with('#')).map(|line| line.rsplit_once(' ').unwrap())
    }
}

/// The sum over replicas.
pub(crate) async fn sum(cluster: &Cluster, places: &[usize], series: &str) -> f64 {
    let mut sum = 0.0;
    for place in places {
        sum += Exposition::of(cluster, *place).await.value(series);
    }
    sum
}
