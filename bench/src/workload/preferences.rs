//! Identical pods whose preferences cannot all be met (sheet 02 §27).

use std::io;

use kerf_model::label::{HOSTNAME, ZONE};
use serde_json::json;

use super::{Problem, diverse};
use crate::objects::{PodTemplate, pod_term};

pub(super) fn write(count: usize, respected: bool, name: &str, file: &mut Problem<'_>) -> io::Result<()> {
    file.begin(name, if respected { "Respect" } else { "Ignore" }, &diverse::types())?;
    file.pool(&diverse::pool())?;
    let labels = json!({ "app": "nginx" });
    let zone = json!({ "key": ZONE, "operator": "In", "values": ["test-zone-1"] });
    let affinity = json!({
        "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            { "weight": 1, "preference": { "matchExpressions": [zone] } },
        ] },
        "podAntiAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
            // There are three zones for thousands of pods: this one must be given up.
            { "weight": 10, "podAffinityTerm": pod_term(ZONE, &labels) },
            { "weight": 1, "podAffinityTerm": pod_term(HOSTNAME, &labels) },
        ] },
    });
    let template = PodTemplate::new(labels, 500, 1024).with("affinity", affinity);
    for at in 0..count {
        file.object("Pod", &template.pending(&format!("pod-{at:06}")))?;
    }
    Ok(())
}
