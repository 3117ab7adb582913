//! What was counted and measured so far, and how it is written.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write as _;

use super::catalogue::{Kind, Metric};

/// Of a summary: enough for its quantiles to mean something, and no more.
const OBSERVED: usize = 500;
const QUANTILES: [(f64, &str); 5] = [(0.0, "0"), (0.5, "0.5"), (0.9, "0.9"), (0.99, "0.99"), (1.0, "1")];

#[derive(Debug, Default)]
pub struct Registry {
    families: BTreeMap<&'static str, Family>,
}

#[derive(Debug)]
struct Family {
    metric: &'static Metric,
    /// By the labels as they are written.
    series: BTreeMap<String, Series>,
}

#[derive(Debug)]
enum Series {
    Value(f64),
    Buckets { counts: Vec<u64>, sum: f64, count: u64 },
    Observed { last: VecDeque<f64>, sum: f64, count: u64 },
}

impl Registry {
    pub fn set(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        if let Series::Value(old) = self.at(metric, labels) {
            *old = value;
        }
    }

    pub fn add(&mut self, metric: &'static Metric, labels: &[&str], amount: f64) {
        if let Series::Value(old) = self.at(metric, labels) {
            *old += amount;
        }
    }

    pub fn observe(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        match self.at(metric, labels) {
            Series::Value(_) => {}
            Series::Buckets { counts, sum, count } => {
                if let Kind::Histogram(bounds) = metric.kind {
                    for (slot, bound) in counts.iter_mut().zip(bounds) {
                        *slot += u64::from(value <= *bound);
                    }
                }
                (*sum, *count) = (*sum + value, *count + 1);
            }
            Series::Observed { last, sum, count } => {
                if last.len() == OBSERVED {
                    last.pop_front();
                }
                last.push_back(value);
                (*sum, *count) = (*sum + value, *count + 1);
            }
        }
    }

    /// Every series of the metric.
    pub fn forget(&mut self, metric: &'static Metric) {
        self.families.remove(metric.name);
    }

    fn at(&mut self, metric: &'static Metric, labels: &[&str]) -> &mut Series {
        let family = self.families.entry(metric.name).or_insert_with(|| Family { metric, series: BTreeMap::new() });
        family.series.entry(pairs(metric.labels, labels)).or_insert_with(|| match metric.kind {
            Kind::Counter | Kind::Gauge => Series::Value(0.0),
            Kind::Histogram(bounds) => Series::Buckets { counts: vec![0; bounds.len()], sum: 0.0, count: 0 },
            Kind::Summary => Series::Observed { last: VecDeque::new(), sum: 0.0, count: 0 },
        })
    }

    /// Adds everything to a page.
    pub fn write(&self, page: &mut Page) {
        for family in self.families.values() {
            for (labels, series) in &family.series {
                series.write(family.metric, labels, page);
            }
        }
    }
}

impl Series {
    fn write(&self, metric: &'static Metric, labels: &str, page: &mut Page) {
        match self {
            Self::Value(value) => page.line(metric, "", labels, *value),
            Self::Buckets { counts, sum, count } => {
                if let Kind::Histogram(bounds) = metric.kind {
                    for (bound, reached) in bounds.iter().zip(counts) {
                        page.line(metric, "_bucket", &with(labels, "le", &bound.to_string()), *reached as f64);
                    }
                }
                page.line(metric, "_bucket", &with(labels, "le", "+Inf"), *count as f64);
                page.line(metric, "_sum", labels, *sum);
                page.line(metric, "_count", labels, *count as f64);
            }
            Self::Observed { last, sum, count } => {
                let mut sorted: Vec<f64> = last.iter().copied().collect();
                sorted.sort_by(f64::total_cmp);
                for (quantile, text) in QUANTILES {
                    let index = ((sorted.len().saturating_sub(1)) as f64 * quantile).round() as usize;
                    let value = sorted.get(index).copied().unwrap_or(f64::NAN);
                    page.line(metric, "", &with(labels, "quantile", text), value);
                }
                page.line(metric, "_sum", labels, *sum);
                page.line(metric, "_count", labels, *count as f64);
            }
        }
    }
}

/// The text format of Prometheus, family by family.
#[derive(Debug, Default)]
pub struct Page(BTreeMap<&'static str, (&'static Metric, String)>);

impl Page {
    /// One sample of a gauge, with its labels in the order of the catalogue.
    pub fn gauge(&mut self, metric: &'static Metric, labels: &[&str], value: f64) {
        self.line(metric, "", &pairs(metric.labels, labels), value);
    }

    /// With labels that are written already, before those of the catalogue.
    pub fn gauge_of(&mut self, metric: &'static Metric, written: &str, labels: &[&str], value: f64) {
        let own = pairs(metric.labels, labels);
        let comma = if written.is_empty() || own.is_empty() { "" } else { "," };
        let labels = format!("{written}{comma}{own}");
        self.line(metric, "", &labels, value);
    }

    fn line(&mut self, metric: &'static Metric, suffix: &str, labels: &str, value: f64) {
        let (_, text) = self.0.entry(metric.name).or_insert_with(|| (metric, String::new()));
        let name = metric.name;
        // Writing to a String cannot fail.
        let _ = match labels {
            "" => writeln!(text, "{name}{suffix} {value}"),
            labels => writeln!(text, "{name}{suffix}{{{labels}}} {value}"),
        };
    }

    pub fn text(self) -> String {
        let mut all = String::new();
        for (name, (metric, text)) in self.0 {
            let _ = writeln!(all, "# HELP {name} {}\n# TYPE {name} {}", metric.help, metric.kind.word());
            all.push_str(&text);
        }
        all
    }
}

/// `key="value"`, with commas between them.
pub fn pairs(keys: &[&str], values: &[&str]) -> String {
    debug_assert_eq!(keys.len(), values.len(), "a metric has all its labels: {keys:?}");
    let mut text = String::new();
    for (key, value) in keys.iter().zip(values) {
        let comma = if text.is_empty() { "" } else { "," };
        let _ = write!(text, "{comma}{key}=\"{}\"", escape(value));
    }
    text
}

fn with(labels: &str, key: &str, value: &str) -> String {
    if labels.is_empty() { format!("{key}=\"{value}\"") } else { format!("{labels},{key}=\"{value}\"") }
}

fn escape(value: &str) -> std::borrow::Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue;
    use super::*;

    fn text(registry: &Registry) -> String {
        let mut page = Page::default();
        registry.write(&mut page);
        page.text()
    }

    #[test]
    fn counters_histograms_and_summaries_are_written_as_prometheus_reads_them() {
        let mut registry = Registry::default();
        registry.add(&catalogue::NODES_CREATED, &["general", "zone \"a\""], 1.0);
        registry.add(&catalogue::NODES_CREATED, &["general", "zone \"a\""], 1.0);
        registry.observe(&catalogue::CLAIM_TERMINATION, &["general"], 3.0);
        for value in [1.0, 2.0, 3.0] {
            registry.observe(&catalogue::PODS_STARTUP, &[], value);
        }
        let text = text(&registry);
        for line in [
            "# TYPE karpenter_nodes_created_total counter",
            "karpenter_nodes_created_total{nodepool=\"general\",zone=\"zone \\\"a\\\"\"} 2",
            "karpenter_nodeclaims_termination_duration_seconds_bucket{nodepool=\"general\",le=\"2\"} 0",
            "karpenter_nodeclaims_termination_duration_seconds_bucket{nodepool=\"general\",le=\"4\"} 1",
            "karpenter_nodeclaims_termination_duration_seconds_bucket{nodepool=\"general\",le=\"+Inf\"} 1",
            "karpenter_nodeclaims_termination_duration_seconds_sum{nodepool=\"general\"} 3",
            "karpenter_pods_startup_duration_seconds{quantile=\"0.5\"} 2",
            "karpenter_pods_startup_duration_seconds{quantile=\"1\"} 3",
            "karpenter_pods_startup_duration_seconds_count 3",
        ] {
            assert!(text.lines().any(|found| found == line), "{line}\nis not in\n{text}");
        }
    }
}
