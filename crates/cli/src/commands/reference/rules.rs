//! Every finding that `kerf validate` and `kerf convert` can print.

use kerf_api::rule_book::{RuleId, Source};

use super::{code, table_header, table_row};

const INTRODUCTION: &str = "\
# Findings

Every finding ends with the id of its rule in brackets; `kerf validate -o json` has it as `rule`. Ids are stable.

";

const SECTIONS: [(Source, &str); 4] = [
    (Source::Rejection, "## Errors of `kerf validate`\n\nThe API server would reject the object. Exit code 1.\n\n"),
    (
        Source::Warning,
        "## Warnings of `kerf validate`\n\nThe API server accepts the object, but it does not do what it seems to. Exit code 0; 1 with `--strict`.\n\n",
    ),
    (
        Source::ConversionError,
        "## Errors of `kerf convert`\n\nThe document stayed as it was, or the result needs a hand before it works. Exit code 1.\n\n",
    ),
    (
        Source::ConversionWarning,
        "## Warnings of `kerf convert`\n\nThe result differs from the original in a way worth knowing. Exit code 0. `kerf validate` gives those about \
         workloads too.\n\n",
    ),
];

pub fn page() -> String {
    let mut page = INTRODUCTION.to_string();
    for (source, title) in SECTIONS {
        page.push_str(title);
        page.push_str(&table_header(&["Rule", "Meaning", "What to do"]));
        for rule in RuleId::ALL.iter().filter(|rule| rule.source() == source) {
            page.push_str(&table_row(&[&code(rule.as_str()), rule.meaning(), rule.remedy()]));
        }
        page.push('\n');
    }
    page
}
