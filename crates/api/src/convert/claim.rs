//! v1alpha5 Machine and v1beta1 NodeClaim. Their instances are not taken over by a manifest, which the note says.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::note::{Finding, Recorder};
use super::{beta, kubelet, metadata, new_object};

pub(super) fn convert_machine(object: Map<String, Value>, recorder: &mut Recorder<'_>) -> Option<Value> {
    convert(object, "machineTemplateRef", "spec.machineTemplateRef", recorder)
}

pub(super) fn convert_beta(object: Map<String, Value>, recorder: &mut Recorder<'_>) -> Option<Value> {
    convert(object, "nodeClassRef", "spec.nodeClassRef", recorder)
}

fn convert(
    object: Map<String, Value>,
    class_field: &str,
    class_path: &'static str,
    recorder: &mut Recorder<'_>,
) -> Option<Value> {
    let mut top = Fields::new("", object);
    top.take("apiVersion");
    top.take("kind");
    // Conditions and the instance's id: only the controller may write them.
    top.take("status");
    let metadata = metadata::convert(&mut top, recorder);
    let mut old = Fields::of(&mut top, "spec", "spec", recorder);
    let mut spec = Map::new();
    old.move_to(&mut spec, &["taints", "startupTaints", "resources", "terminationGracePeriod"]);
    let requirements = old.list("requirements", recorder).unwrap_or_default();
    spec.insert("requirements".to_owned(), Value::Array(requirements));
    beta::take_class_reference(&mut old, class_field, class_path, &mut spec, recorder);
    let kubelet_path = old.path_of("kubelet");
    if let Some(kubelet) = kubelet::take(&mut old, "kubelet", recorder) {
        recorder.add(kubelet_path, Finding::KubeletWithoutClass { kubelet: Value::Object(kubelet).to_string() });
    }
    recorder.add("spec", Finding::ClaimLaunchesInstance);
    let sound = old.finish(recorder) & top.finish(recorder);
    sound.then(|| new_object("karpenter.sh/v1", "NodeClaim", metadata, spec))
}
