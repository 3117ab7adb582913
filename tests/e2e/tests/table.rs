//! The table of cases against offline admission, with the definitions of every provider. No cluster needed.

use kerf_api::admission::{Admission, Outcome};
use kerf_api::crds;
use kerf_e2e::converted;
use kerf_e2e::table::{self, CrdSet};

/// Fewer would mean that files were not found or not expanded.
const AT_LEAST: usize = 180;

#[test]
fn every_case_of_the_table_gets_its_answer_offline() {
    let rows = table::rows().unwrap();
    assert!(rows.len() >= AT_LEAST, "only {} cases", rows.len());
    let mut objections = Vec::new();
    for set in CrdSet::EVERY {
        let admission = Admission::new(&crds(set.provider())).unwrap();
        for row in rows.iter().filter(|row| row.sets.contains(&set)) {
            if let Some(objection) = row.objection(&row.ask(&admission)).unwrap() {
                objections.push(format!("[{set}] {} ({}): {objection}", row.name, row.sheet));
            }
        }
    }
    assert!(objections.is_empty(), "{} of {}:\n{}", objections.len(), rows.len(), objections.join("\n"));
}

#[test]
fn what_conversion_makes_is_accepted_offline() {
    let admission = Admission::new(&crds(None)).unwrap();
    let converted = converted::objects(&admission).unwrap();
    for (file, object) in &converted {
        let outcome = admission.create(object);
        assert!(matches!(outcome, Outcome::Accepted(_)), "{file}: {outcome:?}\n{object:#}");
    }
}
