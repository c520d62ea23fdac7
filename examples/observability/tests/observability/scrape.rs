//! A scrape, read by a parser that is not the one that wrote it.

use std::collections::BTreeSet;

use prometheus_parse::{Sample, Value};

pub(crate) struct Scrape(Vec<Series>);

/// A line of the scrape: a series and its value.
pub(crate) struct Series {
    pub(crate) metric: String,
    pub(crate) labels: Vec<(String, String)>,
    value: f64,
}

impl Scrape {
    pub(crate) fn parse(text: &str) -> Self {
        let lines = text.lines().map(|line| Ok(line.to_owned()));
        let samples = prometheus_parse::Scrape::parse(lines).unwrap().samples;
        assert!(!samples.is_empty(), "nothing was parsed of\n{text}");
        Self(samples.into_iter().flat_map(series).collect())
    }

    pub(crate) fn of<'a>(&'a self, metric: &'a str) -> impl Iterator<Item = &'a Series> {
        self.0.iter().filter(move |series| series.metric == metric)
    }

    pub(crate) fn metrics(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|series| &*series.metric).collect::<BTreeSet<_>>().into_iter()
    }

    /// The value of the only series of the metric with these labels.
    pub(crate) fn value(&self, metric: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let mut found = self.of(metric).filter(|series| labels.iter().all(|(name, is)| series.label(name) == Some(is)));
        found.next().filter(|_| found.next().is_none()).map(|series| series.value)
    }
}

impl Series {
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(is, _)| is == name).map(|(_, value)| &**value)
    }
}

/// A histogram is several series, as a server of metrics keeps them.
fn series(sample: Sample) -> Vec<Series> {
    let labels: Vec<(String, String)> =
        sample.labels.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let one = |value| Series { metric: sample.metric.clone(), labels: labels.clone(), value };
    match sample.value {
        Value::Counter(value) | Value::Gauge(value) | Value::Untyped(value) => vec![one(value)],
        Value::Histogram(buckets) => buckets
            .into_iter()
            .map(|bucket| {
                let mut labels = labels.clone();
                labels.push(("le".to_owned(), bucket.less_than.to_string()));
                Series { metric: format!("{}_bucket", sample.metric), labels, value: bucket.count }
            })
            .collect(),
        Value::Summary(_) => panic!("{} is a summary", sample.metric),
    }
}
