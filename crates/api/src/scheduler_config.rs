//! The scheduler's own configuration (`--scheduler-config`): what pods without spread constraints get (sheet 02 §23).
//!
//! Read strictly: a field that is not known, or that means nothing here, ends the start with a sentence about it. A
//! controller that places pods by other rules than the scheduler does would launch nodes that nobody uses.

use kerf_model::cluster::{SpreadConstraint, WhenUnsatisfiable};
use kerf_model::label::check_qualified_name;
use serde::Deserialize;

use crate::manifest;

/// Why a configuration is not used.
#[derive(Debug, thiserror::Error)]
pub enum SchedulerConfigError {
    #[error("it is neither YAML nor JSON: {0}")]
    Syntax(String),
    #[error("it does not decode")]
    Decode(#[source] serde_json::Error),
    #[error("podTopologySpread.defaultConstraints[{index}].{field}: {problem}")]
    Constraint { index: usize, field: &'static str, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Config {
    #[serde(default)]
    pod_topology_spread: PodTopologySpread,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PodTopologySpread {
    #[serde(default)]
    default_constraints: Vec<Constraint>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Constraint {
    max_skew: i32,
    topology_key: String,
    when_unsatisfiable: String,
    label_selector: Option<serde_json::Value>,
    match_label_keys: Option<Vec<String>>,
    min_domains: Option<i32>,
    node_affinity_policy: Option<String>,
    node_taints_policy: Option<String>,
}

/// The default constraints, without selectors: those are deduced for each pod. Empty text means none.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn default_constraints(text: &str) -> Result<Vec<SpreadConstraint>, SchedulerConfigError> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let mut documents = manifest::read("scheduler-config", text.as_bytes());
    let document = match (documents.pop(), documents.is_empty()) {
        (Some(Ok(document)), true) => document,
        (Some(Err(error)), _) => return Err(SchedulerConfigError::Syntax(error.to_string())),
        (Some(Ok(_)), false) => return Err(SchedulerConfigError::Syntax("there is more than one document".into())),
        (None, _) => return Ok(Vec::new()),
    };
    let config: Config = serde_json::from_value(document.object.into()).map_err(SchedulerConfigError::Decode)?;
    let mut constraints: Vec<SpreadConstraint> = Vec::new();
    for (index, wire) in config.pod_topology_spread.default_constraints.into_iter().enumerate() {
        let wrong =
            |(field, problem): (&'static str, String)| SchedulerConfigError::Constraint { index, field, problem };
        let constraint = constraint(wire).map_err(wrong)?;
        let same = |known: &SpreadConstraint| {
            known.topology_key == constraint.topology_key && known.when_unsatisfiable == constraint.when_unsatisfiable
        };
        if constraints.iter().any(same) {
            let problem = "the same key and whenUnsatisfiable are there already".to_owned();
            return Err(wrong(("topologyKey", problem)));
        }
        constraints.push(constraint);
    }
    Ok(constraints)
}

fn constraint(wire: Constraint) -> Result<SpreadConstraint, (&'static str, String)> {
    if wire.max_skew <= 0 {
        return Err(("maxSkew", format!("{} is not above zero", wire.max_skew)));
    }
    if let Err(error) = check_qualified_name(&wire.topology_key) {
        return Err(("topologyKey", error.to_string()));
    }
    if wire.label_selector.is_some() {
        return Err(("labelSelector", "must be left out: it is deduced for each pod".to_owned()));
    }
    if wire.match_label_keys.is_some() {
        return Err(("matchLabelKeys", "must be left out: the selector is deduced for each pod".to_owned()));
    }
    if wire.min_domains.is_some_and(|domains| domains <= 0) {
        return Err(("minDomains", "is not above zero".to_owned()));
    }
    let when_unsatisfiable = match wire.when_unsatisfiable.as_str() {
        "DoNotSchedule" => WhenUnsatisfiable::DoNotSchedule,
        "ScheduleAnyway" => WhenUnsatisfiable::ScheduleAnyway,
        other => return Err(("whenUnsatisfiable", format!("{other:?} is neither DoNotSchedule nor ScheduleAnyway"))),
    };
    let honors = |field, policy: Option<String>, default| match policy.as_deref() {
        None => Ok(default),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => Err((field, format!("{other:?} is neither Honor nor Ignore"))),
    };
    Ok(SpreadConstraint {
        max_skew: wire.max_skew,
        topology_key: wire.topology_key.as_str().into(),
        when_unsatisfiable,
        selector: None,
        min_domains: wire.min_domains,
        honors_node_affinity: honors("nodeAffinityPolicy", wire.node_affinity_policy, true)?,
        honors_node_taints: honors("nodeTaintsPolicy", wire.node_taints_policy, false)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZONE: &str = "{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: ScheduleAnyway}";

    fn config(constraints: &str) -> String {
        format!("podTopologySpread:\n  defaultConstraints: [{constraints}]\n")
    }

    #[test]
    fn yaml_and_json_give_the_constraints_and_nothing_gives_none() {
        let yaml = default_constraints(&config(ZONE)).unwrap();
        let json = r#"{"podTopologySpread": {"defaultConstraints": [
            {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"}]}}"#;
        assert_eq!(yaml, default_constraints(json).unwrap());
        assert_eq!((yaml.len(), yaml[0].honors_node_affinity, yaml[0].honors_node_taints), (1, true, false));
        assert_eq!(default_constraints("").unwrap(), []);
    }

    #[test]
    fn what_means_nothing_is_refused_with_its_place() {
        let says = |text: &str, part: &str| {
            let mut message = default_constraints(text).unwrap_err().to_string();
            if let Some(source) = std::error::Error::source(&default_constraints(text).unwrap_err()) {
                message = format!("{message}: {source}");
            }
            assert!(message.contains(part), "{message}");
        };
        says("podTopologySpread: {defaultConstraint: []}", "unknown field `defaultConstraint`");
        says(&config(&ZONE.replace("maxSkew: 1", "maxSkew: 0")), "[0].maxSkew: 0 is not above zero");
        says(&config(&format!("{ZONE}, {ZONE}")), "[1].topologyKey: the same key");
        says(&config(&ZONE.replace("ScheduleAnyway", "Perhaps")), "\"Perhaps\" is neither");
        says(&config(&ZONE.replace('}', ", labelSelector: {}}")), "labelSelector: must be left out");
        says(&config(&ZONE.replace("topology.kubernetes.io/zone", "'a b'")), "[0].topologyKey");
        says("a: [", "neither YAML nor JSON");
    }
}
