//! What pods of ReplicaSets should cost to delete: sheet 08 D11; and what deletion costs mean: D10.

use kerf_disruption::deletion_costs;

use crate::fixture::Fixture;

fn costs(text: &str) -> String {
    let fixture = Fixture::read(text);
    let costs = deletion_costs(&fixture.view());
    let shown = costs.iter().map(|cost| {
        let value = cost.cost.value().map_or("-".to_owned(), |value| value.to_string());
        format!("{} {value}", cost.node)
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Going first, then drifted ones, then the rest by what they save, each within its budget; the others have no value.
#[test]
fn pods_of_nodes_that_go_first_cost_least() {
    let text = "type small cpu=4 price=0.1
         type large cpu=8 price=0.2
         pool p after=0s budget=100%
         node cheap pool=p type=small
         node dear pool=p type=large
         node old pool=p type=small drifted=1h
         node gone pool=p type=small deleting
         node kept pool=p type=small annotation:do-not-disrupt=true
         pod x on=cheap cpu=1 owner=ReplicaSet
         pod y on=dear cpu=1 owner=ReplicaSet";
    assert_eq!(costs(text), "gone -2147483648, old -3, dear -2, cheap -1, kept -");
    let one = text.replace("budget=100%", "budget=1");
    // One goes already, and nothing else may.
    assert_eq!(costs(&one), "gone -2147483648, cheap -, dear -, kept -, old -");
    // Each within its own budget: none that has drifted, one of the others.
    let apart = text.replace("budget=100%", "budget=0:Drifted budget=2:Underutilized");
    assert_eq!(costs(&apart), "gone -2147483648, dear -1, cheap -, kept -, old -");
    let apart = text.replace("budget=100%", "budget=2:Drifted budget=0:Underutilized");
    assert_eq!(costs(&apart), "gone -2147483648, old -1, cheap -, dear -, kept -");
    assert!(costs(&text.replace("after=0s", "after=Never")).ends_with("cheap -, dear -, kept -, old -"));
}

/// A pod that is not of a ReplicaSet, Job or DaemonSet keeps its node out of it.
#[test]
fn nodes_with_other_pods_have_no_value() {
    let text = "type small cpu=4\npool p after=0s budget=100%\nnode a pool=p\npod x on=a cpu=1";
    assert_eq!(costs(&format!("{text} owner=ReplicaSet")), "a -1");
    assert_eq!(costs(&format!("{text} owner=Job")), "a -1");
    assert_eq!(costs(&format!("{text} owner=StatefulSet")), "a -");
    assert_eq!(costs(text), "a -");
    assert_eq!(costs(&format!("{text} namespace=kube-system")), "a -1");
    assert_eq!(costs(&format!("{text} owner=ReplicaSet").replace("node a pool=p", "node a pool=p type=gone")), "a -");
    assert_eq!(costs(&format!("{text} owner=ReplicaSet protected")), "a -");
    let fenced = "node a pool=p taint:karpenter.sh/disrupted:NoSchedule";
    assert_eq!(costs(&format!("{text} owner=ReplicaSet").replace("node a pool=p", fenced)), "a -2147483648");
}
