//! The queries of the dashboard and of the alert rules, and what they need to be there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use promql_parser::label::MatchOp;
use promql_parser::parser::{self, Expr, VectorSelector};
use promql_parser::util::{ExprVisitor, walk_expr};
use serde_json::Value;
use yaml_rust2::{Yaml, YamlLoader};

use crate::scrape::Scrape;

pub(crate) struct Query {
    /// What asks.
    of: String,
    /// As a server gets it: without variables.
    pub(crate) text: String,
    /// The text by which a panel calls its lines.
    legend: String,
}

pub(crate) fn path(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// The queries of all panels, and of the variables.
pub(crate) fn of_dashboard() -> Vec<Query> {
    let text = std::fs::read_to_string(path("dashboard.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let targets = panel["targets"].as_array().unwrap();
        assert!(!targets.is_empty(), "{panel}");
        queries.extend(targets.iter().map(|target| {
            let [text, legend] = ["expr", "legendFormat"].map(|field| target[field].as_str().unwrap());
            Query::new(&format!("panel {}", panel["title"]), text, legend)
        }));
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        let Some(query) = variable["query"]["query"].as_str() else { continue };
        let (metric, label) =
            query.strip_prefix("label_values(").unwrap().trim_end_matches(')').split_once(", ").unwrap();
        queries.push(Query::new(
            &format!("variable {}", variable["name"]),
            &format!("count by ({label}) ({metric})"),
            "",
        ));
    }
    queries
}

/// The queries of all alerts. Their texts may name labels of the query.
pub(crate) fn of_alerts() -> Vec<Query> {
    let text = std::fs::read_to_string(path("alerts.yml")).unwrap();
    let rules = &YamlLoader::load_from_str(&text).unwrap()[0]["groups"][0]["rules"];
    let query = |rule: &Yaml| {
        let texts: Vec<&str> =
            rule["annotations"].as_hash().unwrap().values().map(|text| text.as_str().unwrap()).collect();
        let legend = texts.join(" ").replace("{{ $labels.", "{{").replace(" }}", "}}");
        Query::new(&format!("alert {}", rule["alert"].as_str().unwrap()), rule["expr"].as_str().unwrap(), &legend)
    };
    rules.as_vec().unwrap().iter().map(query).collect()
}

impl Query {
    pub(crate) fn new(of: &str, text: &str, legend: &str) -> Self {
        let text = text.replace("$__rate_interval", "5m").replace("$policy", ".*");
        assert!(!text.contains('$'), "{of}: a variable without a value in {text}");
        Self { of: of.to_owned(), text, legend: legend.to_owned() }
    }

    /// The metrics, labels and values of labels that a scrape lacks, and labels that the legend has
    /// and the result has not.
    pub(crate) fn complaints(&self, scrape: &Scrape) -> Vec<String> {
        let mut needs = Needs::default();
        let mut complaints = match parser::parse(&self.text) {
            Err(error) => vec![error],
            Ok(expression) => {
                let Ok(_) = walk_expr(&mut needs, &expression);
                needs.complaints(scrape)
            }
        };
        let names = self.legend.split("{{").skip(1).filter_map(|rest| rest.split_once("}}")).map(|(name, _)| name);
        let labels = names.filter(|name| !name.contains('$'));
        let missing = labels.filter(|label| !needs.grouped_by.contains(*label));
        complaints.extend(missing.map(|label| format!("the legend has `{label}`, and the query has not")));
        complaints.iter().map(|complaint| format!("{}: {complaint}", self.of)).collect()
    }
}

/// What a query names.
#[derive(Default)]
struct Needs {
    selectors: Vec<VectorSelector>,
    grouped_by: BTreeSet<String>,
}

impl ExprVisitor for Needs {
    type Error = std::convert::Infallible;

    fn pre_visit(&mut self, expression: &Expr) -> Result<bool, Self::Error> {
        match expression {
            Expr::VectorSelector(selector) => self.selectors.push(selector.clone()),
            Expr::MatrixSelector(matrix) => self.selectors.push(matrix.vs.clone()),
            Expr::Aggregate(aggregate) => {
                let labels = aggregate.modifier.iter().flat_map(|modifier| modifier.labels().labels.clone());
                self.grouped_by.extend(labels);
            }
            _ => {}
        }
        Ok(true)
    }
}

impl Needs {
    fn complaints(&self, scrape: &Scrape) -> Vec<String> {
        let mut complaints = Vec::new();
        assert!(!self.selectors.is_empty(), "a query of nothing");
        for selector in &self.selectors {
            let metric = selector.name.as_deref().expect("a metric");
            if scrape.of(metric).next().is_none() {
                complaints.push(format!("there is no {metric}"));
                continue;
            }
            let matched = selector.matchers.matchers.iter().map(|matcher| &matcher.name);
            for label in matched.chain(&self.grouped_by) {
                // The server of metrics adds where it scraped.
                let is_there = label == "instance" || scrape.of(metric).any(|series| series.label(label).is_some());
                if !is_there {
                    complaints.push(format!("{metric} has no label `{label}`"));
                }
            }
            for matcher in &selector.matchers.matchers {
                let values: Vec<&str> = match matcher.op {
                    MatchOp::Equal => vec![&matcher.value],
                    MatchOp::Re(_) if matcher.value != ".*" => matcher.value.split('|').collect(),
                    _ => Vec::new(),
                };
                let mut labels = scrape.of(metric).filter_map(|series| series.label(&matcher.name)).peekable();
                if labels.peek().is_none() {
                    continue;
                }
                let there: Vec<&str> = labels.collect();
                let missing = values.into_iter().filter(|value| !there.contains(value));
                complaints.extend(missing.map(|value| format!("no {metric} has the `{}` {value:?}", matcher.name)));
            }
        }
        complaints
    }
}
