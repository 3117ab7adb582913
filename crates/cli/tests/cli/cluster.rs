//! Commands that look at a cluster, on the dumps that come with Kerf and on small ones.

use serde_json::{Value, json};

use super::harness::{kerf, pool, repository};

const UNDERUSED: &str = "-f examples/dumps/underused --at 2026-11-16T20:00:00Z";

fn answer(command: &str) -> Value {
    kerf(&format!("{command} -o json")).current_dir(&repository()).run().json()
}

fn labels<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}

#[test]
fn schedule_says_what_to_launch_and_why_a_pod_has_no_place_per_pool() {
    let run = kerf("schedule -f examples/dumps/pending -o json").current_dir(&repository()).exits(1);
    let report = run.json();
    let mut pools = labels(&report["claims"], "pool");
    pools.sort_unstable();
    assert_eq!(pools, ["batch", "general"]);
    for claim in report["claims"].as_array().unwrap() {
        assert!(!claim["options"].as_array().unwrap().is_empty() && !claim["pods"].as_array().unwrap().is_empty());
    }
    let [giant] = report["unplaced"].as_array().unwrap().as_slice() else { panic!("{report}") };
    assert_eq!(giant["pod"], "shop/giant");
    assert_eq!(giant["pools"]["batch"]["reason"], "taint");
    assert_eq!(giant["pools"]["general"]["reason"], "resources");
    let message = giant["pools"]["general"]["message"].as_str().unwrap();
    assert!(message.contains("c-16x-amd64-linux") && message.contains("15900m"), "the nearest miss: {message}");
    assert_eq!(report["assumptions"].as_array().unwrap().len(), 2);
}

#[test]
fn schedule_is_well_when_every_pod_has_a_place_and_says_so_when_none_waits() {
    let pods = |count: u32| {
        let pod = |number| {
            format!(
                "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{number}}}\nspec: {{containers: [{{name: c, resources: {{requests: {{cpu: 1}}}}}}]}}\n"
            )
        };
        pool("a", "") + &(0..count).map(pod).collect::<String>()
    };
    for policy in ["best", "compatible"] {
        let report = kerf(&format!("schedule -f - --policy {policy} -o json")).stdin(pods(3)).exits(0).json();
        let placed: usize =
            report["claims"].as_array().unwrap().iter().map(|claim| claim["pods"].as_array().unwrap().len()).sum();
        assert_eq!(placed, 3, "{report}");
    }
    assert!(kerf("schedule -f -").stdin(pods(0)).exits(0).stdout.starts_with("No pod needs a place.\n"));
    kerf("schedule -f - --catalogue nowhere.json").stdin(pods(1)).exits(2);
    kerf("schedule -f - --catalogue ec2-like").stdin(pods(1)).exits(0);
}

/// As people type it: what stands behind `-f FILE` is the name, not another file.
#[test]
fn the_dump_may_be_named_before_the_object() {
    for command in ["why -f examples/dumps/underused node held", "budget -f examples/dumps/underused general"] {
        kerf(command).current_dir(&repository()).exits(0);
    }
}

/// A plan of nothing reads as if nothing had to be done.
#[test]
fn what_cannot_be_read_is_no_empty_cluster() {
    for command in ["plan", "schedule", "why pod p", "budget a"] {
        let run = kerf(&format!("{command} -f /nowhere")).exits(2);
        assert!(run.stdout.is_empty() && run.stderr.contains("nothing of the input could be read"), "{}", run.stderr);
    }
    let partly = kerf("plan -f - -o json").stdin(format!("{}---\nnonsense\n", pool("a", ""))).exits(2).json();
    let notes = partly["assumptions"].as_array().unwrap();
    assert!(notes.contains(&json!("what could not be read is not there")), "{notes:?}");
}

/// Nor is what a failed command printed, or a dump of other things.
#[test]
fn a_dump_of_nothing_said_that_there_was_nothing_to_do() {
    let nothing = [
        "error: the server does not have a resource type\n",
        "apiVersion: v1\nkind: List\nitems: []\n",
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\n",
        "apiVersion: karpenter.sh/v1beta1\nkind: NodePool\nmetadata: {name: a}\n",
    ];
    for text in nothing {
        for command in ["plan -f -", "schedule -f -", "why nodepool a -f -", "budget a -f -"] {
            let run = kerf(command).stdin(text).exits(2);
            assert!(run.stdout.is_empty(), "{text}: {}", run.stdout);
        }
    }
    let legacy = kerf("plan -f -").stdin(format!("{}---\n{}", pool("b", ""), nothing[3])).exits(2);
    assert!(
        legacy.stderr.contains("NodePool/a: karpenter.sh/v1beta1 NodePool is not served any more"),
        "{}",
        legacy.stderr
    );
}

/// It panicked.
#[test]
fn objects_of_a_wrong_form_are_told_and_hide_no_others() {
    let wrong = [
        "{apiVersion: v1, kind: Node, metadata: x}",
        "{apiVersion: v1, kind: Node}",
        "{apiVersion: v1, kind: Pod, metadata: []}",
        "{apiVersion: v1, kind: Pod, metadata: {name: no}}",
        "{apiVersion: v1, kind: Pod, metadata: {name: p}, status: 5}",
        "{apiVersion: karpenter.sh/v1, kind: NodeClaim, metadata: {name: c}, status: x}",
        "{kind: Pod, metadata: {name: p}}",
    ];
    for object in wrong {
        let text = format!("{}---\n{object}\n", pool("a", ""));
        let run = kerf("why nodepool a -f - -o json").stdin(text).exits(2);
        assert_eq!(run.json()["verdict"], "usable", "{object}");
        assert!(run.stderr.starts_with("kerf: "), "{object}: {}", run.stderr);
    }
    let status = pool("a", "status: x\n");
    assert_eq!(kerf("why nodepool a -f - -o json").stdin(status).run().json()["verdict"], "invalid");
}

/// A dump without pods was a plan to delete every node, and said nothing about that.
#[test]
fn a_dump_that_was_made_without_a_kind_says_so() {
    let (rules, node) = (pool("a", ""), node("", ""));
    let (claim, machine) = node.split_once("---\napiVersion: v1\nkind: Node\n").unwrap();
    let machine = format!("---\napiVersion: v1\nkind: Node\n{machine}");
    let notes = |text: &str| {
        let plan = kerf("plan -f - --at 2026-11-16T12:00:00Z -o json").stdin(text).exits(0).json();
        let notes = plan["assumptions"].as_array().unwrap().iter().map(|note| note.as_str().unwrap().to_owned());
        notes.filter(|note| !note.ends_with("taken as ready")).collect::<Vec<_>>()
    };
    assert_eq!(notes(&format!("{rules}{node}{POD}")), [""; 0]);
    assert_eq!(notes(&format!("{rules}{node}")), ["the input has no pods: every node counts as empty"]);
    assert_eq!(notes(&format!("{rules}{claim}{POD}")), ["the input has no nodes: no claim counts as joined"]);
    assert_eq!(notes(&format!("{node}{POD}")), ["the input has no NodePools: every claim stays"]);
    assert_eq!(notes(&format!("{rules}{machine}{POD}")), ["the input has no NodeClaims: every node stays"]);
    let twice = format!("{rules}{node}{POD}{POD}{machine}");
    assert_eq!(notes(&twice), ["2 objects there more than once: the last one counts"]);
}

#[test]
fn a_name_that_is_not_there_is_answered_with_those_that_are_meant() {
    let why = |what: &str| {
        let run = kerf(&format!("why {what} {UNDERUSED}")).current_dir(&repository()).exits(2);
        run.stderr.trim_end().to_owned()
    };
    assert_eq!(why("pod gpu"), "kerf: there is no pod default/gpu; is it shop/gpu?");
    assert_eq!(why("node hled"), "kerf: there is no node hled; is it held?");
    assert_eq!(why("node claim-held"), "kerf: there is no node claim-held, but a NodeClaim of that name");
    assert_eq!(why("nodeclaim held"), "kerf: there is no NodeClaim held, but a node of that name");
    assert_eq!(why("nodepool generl"), "kerf: there is no NodePool generl; is it general?");
    for as_kubectl in ["pods shop/gpu", "po shop/gpu", "Pod shop/gpu", "nodes held", "NodePool general"] {
        kerf(&format!("why {as_kubectl} {UNDERUSED}")).current_dir(&repository()).exits(0);
    }
}

/// `why` said that a pod has room on a node that the plan deleted.
#[test]
fn a_node_stays_for_a_pod_that_waits_and_has_room_there() {
    let waits = POD.replace("nodeName: host, ", "").replace(
        "phase: Running",
        "phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable}]",
    );
    let text = pool("a", "  disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}\n") + &node("", "") + &waits;
    let run =
        |command: &str| kerf(&format!("{command} -f - --at 2026-11-16T12:00:00Z -o json")).stdin(&text).exits(0).json();
    assert_eq!(run("why pod shop/p")["message"], "there is room for it on host");
    let plan = run("plan");
    assert_eq!((&plan["moves"], &plan["later"]), (&json!([]), &json!([])), "{plan}");
    assert_eq!(plan["verdicts"]["c"]["verdict"], "nominated");
}

/// They can be copied from its flag.
#[test]
fn gates_are_written_as_the_controller_has_them() {
    let plan = |gates: &str| kerf(&format!("plan -f - --gates {gates}")).stdin(pool("a", "")).exits(0).stdout;
    assert_eq!(
        plan("NodeRepair=true,StaticCapacity=true").lines().count(),
        plan("NodeRepair,StaticCapacity").lines().count()
    );
    kerf("plan -f - --gates Teleport").stdin(pool("a", "")).exits(2);
}

/// An overlay that gives every type a device makes room for a pod that asks for it.
#[test]
fn schedule_puts_overlays_on_the_catalogue() {
    let pod = "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, resources: {requests: {example.com/slots: 1}}}]}\n";
    let overlay = "---\napiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: o}\nspec: {requirements: [], capacity: {example.com/slots: 2}}\n";
    kerf("schedule -f -").stdin(format!("{}{pod}", pool("a", ""))).exits(1);
    kerf("schedule -f -").stdin(format!("{}{pod}{overlay}", pool("a", ""))).exits(0);
}

#[test]
fn plan_says_what_goes_in_order_and_gives_every_claim_a_verdict() {
    let plan = answer(&format!("plan {UNDERUSED}"));
    assert_eq!(labels(&plan["moves"], "reason"), ["Empty", "Underutilized"]);
    assert_eq!(plan["moves"][0]["nodes"][0]["node"], "empty");
    assert_eq!(plan["moves"][1]["landsOn"]["busy"], json!(["shop/api-1"]));
    let verdicts = plan["verdicts"].as_object().unwrap();
    assert_eq!(verdicts.len(), 4, "one for every claim: {verdicts:?}");
    assert_eq!(verdicts["claim-held"]["verdict"], "protected_pod");
    assert!(verdicts["claim-held"]["remedy"].is_string());
    assert_eq!(plan["unplaced"][0]["pod"], "shop/gpu");
}

/// The budget of the pool allows nothing in working hours.
#[test]
fn plan_waits_for_the_budget_and_says_when_it_opens() {
    let plan = answer("plan -f examples/dumps/underused --at 2026-11-16T12:00:00Z --next 1");
    assert_eq!(plan["moves"], json!([]));
    assert_eq!(plan["verdicts"]["claim-empty"]["verdict"], "budget_spent");
    let [later] = plan["later"].as_array().unwrap().as_slice() else { panic!("{plan}") };
    assert_eq!(later["at"], "2026-11-16T17:00:00Z");
    assert_eq!(labels(&later["moves"], "reason"), ["Empty", "Underutilized"]);
    assert_eq!(later["nodes"], json!(["empty", "idle"]));
}

/// It named the budget, and not when it ends.
#[test]
fn why_says_until_when_a_budget_holds() {
    let why = |budgets: &str| {
        let text = pool("a", &format!("  disruption: {{consolidateAfter: 0s, budgets: {budgets}}}\n")) + &node("", "");
        let why = kerf("why node host -f - --at 2026-11-16T12:00:00Z -o json").stdin(text).exits(0).json();
        assert_eq!(why["verdict"], "budget_spent", "{why}");
        value(&why, "until")
    };
    let hours = "schedule: 0 9 * * *, duration: 8h, timeZone: Europe/Berlin";
    assert_eq!(
        why(&format!("[{{nodes: 10%}}, {{nodes: \"0\", {hours}}}]")).as_deref(),
        Some("2026-11-16 16:00:00 UTC")
    );
    assert_eq!(why("[{nodes: \"0\"}]"), None);
}

fn value(why: &Value, name: &str) -> Option<String> {
    let fact = why["facts"].as_array().unwrap().iter().find(|fact| fact["name"] == name)?;
    Some(fact["value"].as_str().unwrap().to_owned())
}

/// Of two nodes of which one could go before, both were named as if they could not.
#[test]
fn the_plan_names_the_nodes_that_could_not_go_before() {
    let other = |text: &str| text.replace("name: c, uid: u", "name: c2, uid: u2").replace("host", "host2");
    let text = pool("a", "  disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}\n")
        + &node("", "")
        + &other(&node("", ""))
            .replace("}}\nspec: {providerID", "}, annotations: {karpenter.sh/do-not-disrupt: 5h}}\nspec: {providerID");
    let plan = kerf("plan -f - --at 2026-11-16T12:00:00Z -o json").stdin(&text).exits(0).json();
    assert_eq!(plan["moves"][0]["nodes"].as_array().unwrap().len(), 1, "{plan}");
    let [later] = plan["later"].as_array().unwrap().as_slice() else { panic!("{plan}") };
    assert_eq!((&later["at"], &later["nodes"]), (&json!("2026-11-16T15:00:00Z"), &json!(["host2"])));
    assert_eq!(later["moves"][0]["nodes"].as_array().unwrap().len(), 2);
    let shown = kerf("plan -f - --at 2026-11-16T12:00:00Z").stdin(&text).exits(0).stdout;
    assert!(shown.contains("At 2026-11-16 15:00:00 UTC, if nothing changes before, also host2:\n"), "{shown}");
}

/// A window that names one action of some nodes was said to hold back another one on others, and not why.
#[test]
fn a_window_that_cannot_be_read_says_so() {
    let window = "---\napiVersion: karpenter.sh/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: night}\nspec:\n  actions: [Drift]\n  selector: {matchLabels: {team: b}}\n  schedules: [{schedule: 0 25 * * *, duration: 1h}]\n";
    let text = pool("a", "  disruption: {consolidateAfter: 0s}\n") + &node("", "") + window;
    let run = |command: &str| kerf(&format!("{command} -f - --at 2026-11-16T12:00:00Z")).stdin(&text).run().stdout;
    let why = run("why node host");
    let problem = "spec.schedules[0]";
    assert!(why.contains("maintenance window night cannot be read and holds back everything: "), "{why}");
    assert!(why.contains(problem), "{why}");
    for command in ["why nodepool a", "budget a"] {
        let told = run(command);
        assert!(told.contains("everything, because it cannot be read: ") && told.contains(problem), "{told}");
    }
}

#[test]
fn why_answers_for_every_kind_and_agrees_with_the_plan() {
    let verdict = |command: &str| answer(&format!("why {command} {UNDERUSED}"))["verdict"].clone();
    assert_eq!(verdict("node empty"), "go");
    assert_eq!(verdict("node held"), "protected_pod");
    assert_eq!(verdict("nodeclaim claim-held"), "protected_pod");
    assert_eq!(verdict("node control-plane"), "not_ours");
    assert_eq!(verdict("nodepool general"), "usable");
    assert_eq!(verdict("pod gpu -n shop"), "no_place");
    assert_eq!(verdict("pod shop/db-1"), "bound");
    let gone = answer(&format!("why node empty {UNDERUSED}"));
    assert_eq!(gone["plan"]["nodes"][0]["node"], "empty");
    let run = kerf(&format!("why node nobody {UNDERUSED}")).current_dir(&repository()).exits(2);
    assert_eq!(run.stderr, "kerf: there is no node nobody\n");
}

/// It said that the budgets allow nothing, and not why.
#[test]
fn why_said_nothing_of_what_holds_a_whole_pool_back() {
    let text = pool("a", "  disruption: {consolidateAfter: 0s, drift: {enabled: false}, budgets: [{nodes: 1000a%}]}\n")
        + "---\napiVersion: karpenter.sh/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: quiet}\nspec:\n  actions: [Drift]\n  schedules: [{schedule: 0 12 * * *, duration: 1h}]\n";
    let why = |at: &str| kerf(&format!("why nodepool a -f - --at {at}")).stdin(&text).run().stdout;
    let open = why("2026-11-16T12:30:00Z");
    assert!(open.contains("holds back Drift until 2026-11-16T13:00:00Z\n"), "{open}");
    assert!(open.contains("spec.disruption.drift.enabled is false\n"), "{open}");
    assert!(open.contains("nodes is \"1000a%\": use a number or a percentage"), "{open}");
    let closed = why("2026-11-16T13:30:00Z");
    assert!(!closed.contains("quiet"), "{closed}");
}

#[test]
fn why_says_what_a_waiting_pod_will_get() {
    let plan = |pod: &str| answer(&format!("why pod {pod} -f examples/dumps/pending"));
    assert_eq!(plan("shop/web-1")["verdict"], "planned");
    assert!(plan("shop/web-1")["message"].as_str().unwrap().contains("general"));
    assert_eq!(plan("shop/giant")["unplaced"]["pools"]["batch"]["reason"], "taint");
}

/// The controller leaves such a pod alone, so nothing may be planned for it. A pod of a manifest is another matter: no
/// scheduler could have looked at it.
#[test]
fn a_node_was_planned_for_a_pod_that_no_scheduler_of_the_cluster_had_looked_at() {
    let pod = |uid: &str| {
        let spec = "spec: {schedulerName: nobody, containers: [{name: c, resources: {requests: {cpu: 1}}}]}";
        let pod =
            format!("---\napiVersion: v1\nkind: Pod\nmetadata: {{name: p{uid}}}\n{spec}\nstatus: {{phase: Pending}}\n");
        pool("a", "") + &pod
    };
    let seen = |command: &str| kerf(&format!("{command} -f - -o json")).stdin(pod(", uid: u-1")).run().json();
    assert_eq!(seen("plan")["launches"], json!([]));
    assert_eq!(seen("why pod p")["verdict"], "not_considered");
    let report = kerf("plan -f - -o json").stdin(pod("")).run().json();
    assert_eq!(report["launches"][0]["pods"], json!(["default/p"]), "of a manifest: {report}");
}

/// `is being deleted`, and nothing about the pod that had kept it for hours.
#[test]
fn why_did_not_say_what_keeps_a_node_that_is_on_its_way_out() {
    let claim = "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim
metadata: {name: c, uid: u, creationTimestamp: '2026-11-16T10:00:00Z', deletionTimestamp: '2026-11-16T11:00:00Z', finalizers: [karpenter.sh/termination],
  labels: {karpenter.sh/nodepool: a}, annotations: {karpenter.sh/nodeclaim-termination-timestamp: '2026-11-16T13:00:00Z'}}
spec: {nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}, requirements: []}
status: {conditions: [{type: Drained, status: Unknown, reason: Draining, lastTransitionTime: '2026-11-16T11:00:00Z',
  message: pod shop/db-1 is protected by karpenter.sh/do-not-disrupt}]}
";
    let why = kerf("why nodeclaim c -f - --at 2026-11-16T12:00:00Z").stdin(pool("a", "") + claim).run().stdout;
    assert!(why.contains("waits for      pod shop/db-1 is protected by karpenter.sh/do-not-disrupt\n"), "{why}");
    assert!(why.contains("at most until  2026-11-16T13:00:00Z\n"), "{why}");
}

/// The gate alone did nothing: what counts as sick is the provider's to say, and the plan did not ask.
#[test]
fn the_plan_knew_the_gate_of_repair_and_repaired_nothing() {
    let sick = pool("a", "")
        + &node("", "").replace("status: 'True', reason: Kubelet", "status: 'False', reason: Kubelet")
        + POD;
    let plan = |gates: &str| {
        let command = format!("plan -f - --at 2026-11-16T12:00:00Z -o json{gates}");
        kerf(&command).stdin(sick.clone()).run().json()["moves"].clone()
    };
    assert_eq!(labels_of_moves(&plan(" --gates NodeRepair")), ["Unhealthy"]);
    assert_eq!(labels_of_moves(&plan("")), Vec::<String>::new());
}

#[test]
fn the_plan_keeps_the_room_of_buffers_where_their_gate_is_on() {
    let buffer = "---\napiVersion: v1\nkind: PodTemplate\nmetadata: {name: shape, namespace: shop}
template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1}}}]}}
---\napiVersion: autoscaling.x-k8s.io/v1beta1\nkind: CapacityBuffer\nmetadata: {name: room, namespace: shop}
spec: {podTemplateRef: {name: shape}, replicas: 2}
";
    let launched = |gates: &str| {
        let command = format!("plan -f - --at 2026-11-16T12:00:00Z -o json{gates}");
        let report = kerf(&command).stdin(pool("a", "") + buffer).run().json();
        report["launches"].as_array().unwrap().iter().map(|one| one["pods"].as_array().unwrap().len()).sum::<usize>()
    };
    assert_eq!(launched(""), 0);
    assert_eq!(launched(" --gates CapacityBuffer"), 2);
}

#[test]
fn the_plan_spreads_pods_as_the_scheduler_would_by_default() {
    let replica_set = "---\napiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: web, namespace: shop, uid: r}
spec: {replicas: 3, selector: {matchLabels: {app: web}}, template: {metadata: {labels: {app: web}}, spec: {containers: []}}}
";
    let pod = |number| {
        format!(
            "---\napiVersion: v1\nkind: Pod
metadata: {{name: p{number}, namespace: shop, labels: {{app: web}},
  ownerReferences: [{{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r, controller: true}}]}}
spec: {{containers: [{{name: c, resources: {{requests: {{cpu: 100m}}}}}}]}}\n"
        )
    };
    let text = pool("a", "") + replica_set + &(0..3).map(pod).collect::<String>();
    let launched = |config: &[&str]| {
        let report = kerf("plan -f - -o json").args(config).stdin(text.clone()).run().json();
        report["launches"].as_array().unwrap().len()
    };
    let defaults = "podTopologySpread: {defaultConstraints: [{maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule}]}";
    assert_eq!(launched(&[]), 1);
    assert_eq!(launched(&["--scheduler-config", defaults]), 3);
    let wrong =
        kerf("plan -f - -o json").args(&["--scheduler-config", "podTopologySpread: 7"]).stdin(text.clone()).exits(2);
    assert!(wrong.stderr.contains("--scheduler-config"), "{}", wrong.stderr);
}

/// A node `host` of the pool `a`, initialised at ten, of which no controller has said anything more, with more in the
/// metadata and the spec of its claim `c`.
fn node(meta: &str, spec: &str) -> String {
    let condition =
        |kind| format!("{{type: {kind}, status: 'True', reason: {kind}, lastTransitionTime: '2026-11-16T10:00:00Z'}}");
    let conditions = ["Launched", "Registered", "Initialized"].map(condition).join(", ");
    let labels = "labels: {karpenter.sh/nodepool: a, karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true', node.kubernetes.io/instance-type: c-2x-amd64-linux, topology.kubernetes.io/zone: test-zone-a, karpenter.sh/capacity-type: on-demand}";
    format!(
        "---\napiVersion: karpenter.sh/v1\nkind: NodeClaim
metadata: {{name: c, uid: u, creationTimestamp: '2026-11-16T10:00:00Z', finalizers: [karpenter.sh/termination], {labels}{meta}}}
spec: {{nodeClassRef: {{group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}}, requirements: []{spec}}}
status: {{providerID: kwok://host, nodeName: host, conditions: [{conditions}]}}
---\napiVersion: v1\nkind: Node
metadata: {{name: host, uid: v, creationTimestamp: '2026-11-16T10:00:00Z', {labels}}}
spec: {{providerID: kwok://host}}
status: {{allocatable: {{cpu: 1900m, memory: 1Gi, pods: '10'}}, capacity: {{cpu: '2', memory: 1Gi, pods: '10'}},
  conditions: [{{type: Ready, status: 'True', reason: KubeletReady, lastTransitionTime: '2026-11-16T10:00:00Z'}}]}}
"
    )
}

/// It runs there.
const POD: &str = "---\napiVersion: v1\nkind: Pod
metadata: {name: p, uid: w, namespace: shop, creationTimestamp: '2026-11-16T10:00:00Z'}
spec: {nodeName: host, containers: [{name: c, resources: {requests: {cpu: 1}}}]}
status: {phase: Running}
";

/// It said that the node had not settled, at a time that was over, and would never have settled in the plan.
#[test]
fn a_node_that_comes_to_rest_later_was_never_planned_for() {
    let text = pool("a", "  disruption: {consolidateAfter: 3h, budgets: [{nodes: '100%'}]}\n") + &node("", "");
    let plan = |at: &str| kerf(&format!("plan -f - --at {at} --next 2 -o json")).stdin(&text).exits(0).json();
    let early = plan("2026-11-16T12:00:00Z");
    assert_eq!((&early["moves"], &early["verdicts"]["c"]["verdict"]), (&json!([]), &json!("not_settled")));
    let [later] = early["later"].as_array().unwrap().as_slice() else { panic!("{early}") };
    assert_eq!(
        (&later["at"], labels_of_moves(&later["moves"])),
        (&json!("2026-11-16T13:00:00Z"), vec!["Empty".to_owned()])
    );
    assert_eq!(labels_of_moves(&plan("2026-11-16T13:00:00Z")["moves"]), ["Empty"]);
}

/// A pool that is edited in the dump makes its nodes drift, as it would in the cluster.
#[test]
fn the_plan_shows_what_an_edit_of_a_pool_would_do() {
    let never = "  disruption: {consolidateAfter: Never}\n";
    let pool = |label: &str| {
        pool("a", never).replace("    spec:", &format!("    metadata: {{labels: {{team: {label}}}}}\n    spec:"))
    };
    let hash = kerf("hash -f - -o json").stdin(pool("red")).exits(0).json()[0]["hash"].as_str().unwrap().to_owned();
    let annotations =
        format!(", annotations: {{karpenter.sh/nodepool-hash: '{hash}', karpenter.sh/nodepool-hash-version: v3}}");
    let why = |label: &str| {
        let text = pool(label) + &node(&annotations, "") + POD;
        kerf("why nodeclaim c -f - --at 2026-11-16T12:00:00Z -o json").stdin(text).exits(0).json()
    };
    assert_eq!(why("red")["verdict"], "consolidation_disabled", "{}", why("red"));
    let blue = why("blue");
    let drift = blue["facts"].as_array().unwrap().iter().find(|fact| fact["name"] == "drifted").unwrap();
    assert!(drift["value"].as_str().unwrap().starts_with("NodePoolDrifted: "), "{drift}");
    assert_eq!((&blue["verdict"], &blue["plan"]["reason"]), (&json!("go"), &json!("Drifted")), "{blue}");
}

/// So does a node class of AWS's, as far as hashes and images tell.
#[test]
fn the_plan_shows_what_an_edit_of_an_ec2_node_class_would_do() {
    let class = |role: &str, image: &str| {
        format!(
            "---\napiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {{name: default}}
spec: {{role: {role}, amiSelectorTerms: [{{alias: al2023@latest}}], subnetSelectorTerms: [{{id: subnet-1}}], securityGroupSelectorTerms: [{{id: sg-1}}]}}
status: {{amis: [{{id: ami-arm, requirements: [{{key: kubernetes.io/arch, operator: In, values: [arm64]}}]}}, {{id: {image}, requirements: [{{key: kubernetes.io/arch, operator: In, values: [amd64]}}]}}]}}
"
        )
    };
    let hashed = kerf("hash -f - -o json").stdin(class("nodes", "ami-1")).exits(0).json();
    let hash = hashed[0]["hash"].as_str().unwrap();
    let number = |text: &Value| text.as_str().unwrap().parse::<u64>().unwrap();
    let fields = hashed[0]["fields"].as_object().unwrap().iter();
    let fields: Vec<_> = fields.map(|(field, hash)| format!("{field}={:016x}", number(hash))).collect();
    let why = |role: &str, image: &str, annotations: &str| {
        let claim = node(&format!(", annotations: {{{annotations}}}"), "")
            .replace("{group: karpenter.kwok.sh, kind: KWOKNodeClass", "{group: karpenter.k8s.aws, kind: EC2NodeClass")
            .replace("status: {providerID", "status: {imageID: ami-1, providerID")
            .replace("labels: {", "labels: {kubernetes.io/arch: amd64, ");
        let pool = pool("a", "  disruption: {consolidateAfter: Never}\n")
            .replace("{group: karpenter.kwok.sh, kind: KWOKNodeClass", "{group: karpenter.k8s.aws, kind: EC2NodeClass");
        let text = pool + &class(role, image) + &claim + POD;
        let why = kerf("why nodeclaim c -f - --at 2026-11-16T12:00:00Z -o json").stdin(text).exits(0).json();
        let drift = why["facts"].as_array().unwrap().iter().find(|fact| fact["name"] == "drifted").cloned();
        drift.map_or_else(String::new, |drift| drift["value"].as_str().unwrap().to_owned())
    };
    let of_kerf = format!(
        "karpenter.k8s.aws/ec2nodeclass-hash: '{hash}', karpenter.k8s.aws/ec2nodeclass-hash-version: v6, kerf.sh/ec2nodeclass-field-hashes: 'v1 {hash} {}'",
        fields.join(",")
    );
    assert_eq!(why("nodes", "ami-1", &of_kerf), "");
    let edited = why("others", "ami-1", &of_kerf);
    assert!(edited.starts_with("NodeClassDrift: spec.role was a value with hash "), "{edited}");
    assert!(edited.ends_with(" and is others"), "{edited}");
    let image = "AMIDrift: spec.amiSelectorTerms selected ami-1 and selects ami-2";
    assert_eq!(why("nodes", "ami-2", &of_kerf), image);
    // Another controller left no hashes of fields, and no hash of the class is in the dump: only the image tells.
    assert_eq!(why("others", "ami-1", "a: b"), "");
    assert_eq!(why("others", "ami-2", "a: b"), image);
}

#[test]
fn the_plan_tells_of_nodes_whose_time_is_over() {
    let text = pool("a", "  disruption: {consolidateAfter: Never}\n") + &node("", ", expireAfter: 2h") + POD;
    let plan = |at: &str| kerf(&format!("plan -f - --at {at} -o json")).stdin(&text).exits(0).json();
    assert_eq!(plan("2026-11-16T11:59:59Z")["expired"], json!([]));
    let over = plan("2026-11-16T12:00:00Z");
    assert_eq!(
        over["expired"][0],
        json!({"claim": "c", "node": "host", "pool": "a", "expireAfter": "2h0m0s", "pods": ["shop/p"]})
    );
    assert_eq!(over["launches"][0]["pods"], json!(["shop/p"]), "their pods need another node");
    assert_eq!(over["verdicts"]["c"]["verdict"], "leaving");
}

/// The plan knew them only when it was too late, and of a node whose time is over nobody said what keeps it.
#[test]
fn nodes_that_will_expire_are_told_with_what_holds_them() {
    let window = "---\napiVersion: karpenter.sh/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: day}\nspec:\n  actions: [Expiration]\n  schedules: [{schedule: 0 12 * * *, duration: 3h}]\n";
    let text = pool("a", "  disruption: {consolidateAfter: Never}\n") + &node("", ", expireAfter: 2h") + POD;
    let run = |command: &str, at: &str, window: &str| {
        kerf(&format!("{command} -f - --at {at} -o json")).stdin(format!("{text}{window}")).exits(0).json()
    };
    let early = "2026-11-16T11:00:00Z";
    let plan = run("plan", early, "");
    assert_eq!(plan["expiring"], json!([{"at": "2026-11-16T12:00:00Z", "claim": "c", "node": "host", "pool": "a"}]));
    assert_eq!(value(&run("why node host", early, ""), "expires").as_deref(), Some("2026-11-16 12:00:00 UTC"));
    let late = "2026-11-16T13:00:00Z";
    let plan = run("plan", late, window);
    assert_eq!((&plan["expired"], &plan["expiring"][0]["at"]), (&json!([]), &json!("2026-11-16T15:00:00Z")));
    let held = value(&run("why node host", late, window), "expired").unwrap();
    assert_eq!(held, "held back: by maintenance window day until 2026-11-16T15:00:00Z");
    assert_eq!(run("plan", late, "")["expiring"], json!([]), "it goes now");
}

#[test]
fn a_replacement_must_save_what_was_asked_for() {
    let small = POD.replace("cpu: 1", "cpu: 500m");
    let text = pool("a", "  disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}\n") + &node("", "") + &small;
    let verdict = |savings: &str| {
        let command = format!("plan -f - --at 2026-11-16T12:00:00Z -o json{savings}");
        kerf(&command).stdin(&text).exits(0).json()["verdicts"]["c"]["verdict"].clone()
    };
    assert_eq!(verdict(""), "go");
    assert_eq!(verdict(" --minimum-savings 99%"), "below_floor");
    assert_eq!(verdict(" --minimum-savings 5%:10"), "below_floor");
    let wrong = kerf("plan -f - --minimum-savings much").stdin(&text).exits(2);
    assert!(wrong.stderr.contains("is no floor for savings"), "{}", wrong.stderr);
}

#[test]
fn the_plan_says_that_the_catalogue_is_of_another_cloud() {
    let text = pool("a", "  disruption: {consolidateAfter: 0s}\n")
        + &node("", "").replace("c-2x-amd64-linux", "m5.large")
        + POD;
    let plan = kerf("plan -f - --at 2026-11-16T12:00:00Z").stdin(text).exits(0).stdout;
    assert!(
        plan.contains("Note: 1 node of an instance type that the catalogue does not have: say with --catalogue"),
        "{plan}"
    );
}

fn labels_of_moves(moves: &Value) -> Vec<String> {
    moves.as_array().unwrap().iter().map(|one| one["reason"].as_str().unwrap().to_owned()).collect()
}

fn budget(budgets: &str) -> (Value, i32) {
    let text = pool("a", &format!("  disruption: {{consolidateAfter: 0s, budgets: {budgets}}}\n"));
    let run = kerf("budget a -f - --week --nodes 10 --at 2026-11-16T00:00:00Z -o json").stdin(text).run();
    (run.json(), run.code)
}

fn rules(budgets: &str) -> Vec<String> {
    let (report, code) = budget(budgets);
    let rules: Vec<String> = labels(&report["warnings"], "rule").into_iter().map(str::to_owned).collect();
    assert_eq!(code, i32::from(!rules.is_empty()), "{report}");
    rules
}

#[test]
fn budget_shows_what_is_allowed_when() {
    let (report, code) =
        budget("[{nodes: 20%}, {nodes: \"0\", schedule: 0 9 * * mon-fri, duration: 8h, reasons: [Drifted]}]");
    assert_eq!(code, 0, "{report}");
    let calendar = report["calendar"].as_array().unwrap();
    assert_eq!(calendar.len(), 11);
    assert_eq!(calendar[1]["from"], "2026-11-16T09:00:00Z");
    assert_eq!(calendar[1]["allowed"], json!({"Underutilized": 2, "Empty": 2, "Drifted": 0, "Unhealthy": 2}));
    assert_eq!(calendar[10]["to"], "2026-11-23T00:00:00Z");
}

#[test]
fn budget_warns_of_what_does_not_do_what_it_seems_to() {
    assert_eq!(rules("[{nodes: 10%}]"), [""; 0]);
    assert_eq!(rules("[]"), ["no_budgets"]);
    assert_eq!(rules("[{nodes: \"1\", schedule: '@daily', duration: 1h}]"), ["unlimited_outside"]);
    assert_eq!(rules("[{nodes: 10%}, {nodes: \"2\", schedule: 0 0 31 2 *, duration: 1h}]"), ["never_active"]);
    assert_eq!(rules("[{nodes: \"1\"}, {nodes: \"5\", schedule: '@daily', duration: 1h}]"), ["never_counts"]);
    assert_eq!(rules("[{nodes: \"1\"}, {nodes: \"1\"}]"), ["never_counts"]);
    assert_eq!(rules("[{nodes: 10%}, {nodes: \"0\", reasons: [Drifted]}]"), ["nothing_ever"]);
    // Together they are always there, and leave nothing.
    let (week, weekend) = ("schedule: '0 0 * * mon-fri', duration: 24h", "schedule: '0 0 * * sat,sun', duration: 24h");
    let cancel = |other: &str| rules(&format!("[{{nodes: \"0\", {week}}}, {{nodes: \"{other}\", {weekend}}}]"));
    assert_eq!(cancel("0"), ["nothing_ever"]);
    assert_eq!(cancel("1"), [""; 0]);
    // Nobody wrote a schedule that there could be an outside of.
    assert_eq!(rules("[{nodes: \"1\", reasons: [Empty]}]"), ["no_budget_for"]);
    // Fewer for one reason than for the others is what budgets are for.
    assert_eq!(rules("[{nodes: \"5\"}, {nodes: \"1\", reasons: [Drifted]}]"), [""; 0]);
}

/// Budgets that cannot be read were not counted, so that the warning named another one.
#[test]
fn budgets_are_numbered_as_they_are_written() {
    let broken = "{nodes: \"1\", schedule: \"@dailyX\", duration: 1h, reasons: [Empty]}";
    let (report, _) = budget(&format!("[{broken}, {{nodes: \"1\"}}, {{nodes: \"5\"}}]"));
    let messages = labels(&report["warnings"], "message");
    assert!(messages[0].starts_with("budget 1 cannot be read, and allows nothing for Empty: "), "{messages:?}");
    assert_eq!(messages[1], "budget 3 (5) never counts: budget 2 always allows no more (1)");
}

/// Nodes that are still starting were counted, though no budget counts them.
#[test]
fn budget_and_why_count_the_same_nodes() {
    let starting = node("", "").replace("karpenter.sh/initialized: 'true', ", "");
    for (node, count) in [(node("", ""), 1), (starting, 0)] {
        let text = pool("a", "  disruption: {consolidateAfter: 0s, budgets: [{nodes: '100%'}]}\n") + &node;
        let budget = kerf("budget a -f - --at 2026-11-16T12:00:00Z -o json").stdin(&text).exits(0).json();
        assert_eq!(budget["nodes"], count);
        let why = kerf("why nodepool a -f - --at 2026-11-16T12:00:00Z -o json").stdin(&text).exits(0).json();
        assert_eq!(value(&why, "budget Empty"), Some(format!("{count} of {count} nodes, 0 in use")));
    }
    let manifest = kerf("budget a -f -").stdin(pool("a", "")).run().stdout;
    assert!(manifest.contains("Note: there are no nodes to take percentages of"), "{manifest}");
}

#[test]
fn budget_names_the_windows_that_hold_the_pool_back() {
    let text = pool("a", "")
        + "---\napiVersion: karpenter.sh/v1alpha1\nkind: MaintenanceWindow\nmetadata: {name: quiet}\nspec:\n  actions: [Drift]\n  schedules: [{schedule: 0 12 * * *, duration: 1h}]\n";
    let run = kerf("budget a -f - --at 2026-11-16T00:00:00Z -o json").stdin(text).run();
    let windows: Vec<Value> =
        run.json()["calendar"].as_array().unwrap().iter().map(|row| row["windows"].clone()).collect();
    assert_eq!(windows, [json!([]), json!(["quiet holds back Drift"]), json!([])]);
}

#[test]
fn a_dry_freeze_prints_a_window_that_is_valid() {
    for arguments in ["", "--for 90m --reason why", "-l team=a --actions Drift,Repair --name mine"] {
        let printed = kerf(&format!("freeze --dry-run {arguments}")).exits(0).stdout;
        kerf("validate -f - --strict").stdin(&printed).exits(0);
    }
    let window = kerf("freeze --dry-run -o json -l team=a --for 2h").exits(0).json();
    assert_eq!(window["spec"]["selector"], json!({"matchLabels": {"team": "a"}}));
    assert_eq!(window["spec"]["actions"].as_array().unwrap().len(), 5);
    for wrong in ["team", "team!=a", "=a", "team=a,team=b"] {
        kerf(&format!("freeze --dry-run -l {wrong}")).exits(2);
    }
    kerf("freeze --dry-run --for soon").exits(2);
}

#[test]
fn without_a_cluster_it_says_what_to_give() {
    for command in ["plan", "freeze", "thaw"] {
        let run = kerf(command).env("KUBECONFIG", "/nowhere").env("KUBERNETES_SERVICE_HOST", "").exits(2);
        assert!(run.stderr.starts_with("kerf: "), "{command}: {}", run.stderr);
    }
}
