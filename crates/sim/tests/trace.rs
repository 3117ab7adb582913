//! One seed, one history, to the last byte: the number of all effects and all changes of the store is the one that was
//! committed, in debug as in release.
#![expect(clippy::unwrap_used, reason = "in helpers of tests a failure is the failure of the test")]

use std::sync::{Arc, LazyLock};

use jiff::SignedDuration;
use kerf_api::admission::Admission;
use kerf_cloud::Catalogue;
use kerf_sim::history::{Keep, Options, run};

static ADMISSION: LazyLock<Arc<Admission>> = LazyLock::new(|| Arc::new(Admission::new(&kerf_api::crds(None)).unwrap()));

const EXPECTED: &str = include_str!("trace.txt");

fn trace(seed: u64) -> String {
    // Short, so that a build without optimisation can do it in seconds.
    let options = Options { lasts: SignedDuration::from_mins(20), journal: Keep::Hash, ..Options::default() };
    let report = run(seed, &ADMISSION, Catalogue::kwok().types(), &options);
    format!("{seed} {:016x}", report.hash.unwrap())
}

/// When decisions change on purpose: `KERF_RENEW=1 cargo test --release -p kerf-sim --test trace`.
#[test]
fn the_same_seed_gives_the_same_trace_in_debug_and_in_release() {
    let traces: Vec<String> =
        EXPECTED.lines().map(|line| trace(line.split(' ').next().unwrap().parse().unwrap())).collect();
    if std::env::var_os("KERF_RENEW").is_some() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/trace.txt");
        return std::fs::write(file, traces.join("\n") + "\n").unwrap();
    }
    assert_eq!(traces, EXPECTED.lines().collect::<Vec<_>>(), "see the test for how to renew them");
}

#[test]
fn the_same_seed_gives_the_same_trace_twice_and_another_seed_another() {
    assert_eq!(trace(2), trace(2));
    assert_ne!(trace(2)[1..], trace(3)[1..]);
}
