//! Every reason why a node stays.

use kerf_disruption::{KeepReason, Method, ObjectionKind};

use super::{code, table_header, table_row};

const INTRODUCTION: &str = "\
# Why a node stays

Every node has one verdict in every round: it goes, it is going already, or it stays for one of these reasons. They are
the same in `kerf why`, `kerf plan`, events and metrics. Labels are stable. How nodes are chosen:
[disruption](../concepts/disruption.md).

";

const METHODS: &str = "\
## Methods

In the order in which they are asked.

";

const OBJECTIONS: &str = "\
## Why a proposal is withdrawn

A consolidation waits 15 seconds before it starts, and is then looked at again.

";

pub fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    page.push_str(&table_header(&["Reason", "Meaning", "What to do"]));
    for reason in KeepReason::ALL {
        page.push_str(&table_row(&[&code(reason.label), reason.meaning, reason.remedy]));
    }
    page.push('\n');
    page.push_str(METHODS);
    page.push_str(&table_header(&["Method", "Nodes that it is about"]));
    for method in Method::ALL {
        page.push_str(&table_row(&[&code(method.label()), method.meaning()]));
    }
    page.push('\n');
    page.push_str(OBJECTIONS);
    page.push_str(&table_header(&["Kind", "Meaning"]));
    for kind in ObjectionKind::ALL {
        page.push_str(&table_row(&[&code(kind.label()), kind.meaning()]));
    }
    page
}
