//! Which crate of the workspace may know which, and what the pure crates may never reach.
//!
//! The arrows are the architecture: a decision cannot read the clock or call the network if nothing that could do it is
//! linked into its crate.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::command::{self, cargo};

/// A crate, and the crates of ours that it may depend on.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("kerf-model", &[]),
    ("kerf-scheduling", &["kerf-model"]),
    ("kerf-disruption", &["kerf-model", "kerf-scheduling"]),
    ("kerf-lifecycle", &["kerf-model"]),
    ("kerf-engine", &["kerf-model", "kerf-scheduling", "kerf-disruption", "kerf-lifecycle"]),
    ("kerf-api", &["kerf-model"]),
    ("kerf-cloud", &["kerf-model"]),
    ("kerf-cloud-kwok", &["kerf-model", "kerf-api", "kerf-cloud"]),
    ("kerf-cloud-aws", &["kerf-model", "kerf-api", "kerf-cloud"]),
    ("kerf-dashboard", &["kerf-model", "kerf-engine"]),
    ("kerf-controller", CONTROLLER_MAY_KNOW),
    ("kerf-sim", WORLD_MAY_KNOW),
    ("kerf-testkit", PURE_CRATES),
    ("kerf-cli", EVERYTHING_SHIPPED),
    ("kerf-bench", EVERYTHING_SHIPPED),
    ("kerf-e2e", EVERYTHING_SHIPPED),
    ("xtask", &[]),
];

const PURE_CRATES: &[&str] = &["kerf-model", "kerf-scheduling", "kerf-disruption", "kerf-lifecycle", "kerf-engine"];

/// Its cloud drifts as AWS does, by the same rules.
const WORLD_MAY_KNOW: &[&str] = &[
    "kerf-model",
    "kerf-scheduling",
    "kerf-disruption",
    "kerf-lifecycle",
    "kerf-engine",
    "kerf-api",
    "kerf-cloud",
    "kerf-cloud-aws",
];

/// The providers need a client, which only the controller has.
const CONTROLLER_MAY_KNOW: &[&str] = &[
    "kerf-model",
    "kerf-scheduling",
    "kerf-disruption",
    "kerf-lifecycle",
    "kerf-engine",
    "kerf-api",
    "kerf-cloud",
    "kerf-cloud-kwok",
];

const EVERYTHING_SHIPPED: &[&str] = &[
    "kerf-model",
    "kerf-scheduling",
    "kerf-disruption",
    "kerf-lifecycle",
    "kerf-engine",
    "kerf-api",
    "kerf-cloud",
    "kerf-cloud-kwok",
    "kerf-cloud-aws",
    "kerf-dashboard",
    "kerf-controller",
    "kerf-sim",
];

/// Tests of any crate may use these besides what the crate itself may know.
const TESTS_MAY_USE: &[&str] = &["kerf-testkit"];

/// What a pure crate may not reach, however indirectly: the network, threads that wait, randomness, loggers. A name
/// stands for itself and for everything that continues it with a dash or an underscore (`kube`, `kube-client`).
const IMPURE: &[&str] = &[
    "async-std",
    "aws",
    "axum",
    "chrono",
    "env_logger",
    "fastrand",
    "getrandom",
    "h2",
    "http",
    "hyper",
    "k8s-openapi",
    "kube",
    "log",
    "mio",
    "opentelemetry",
    "prometheus",
    "quinn",
    "rand",
    "reqwest",
    "ring",
    "rustls",
    "slog",
    "smol",
    "socket2",
    "tokio",
    "tower",
    "tracing",
    "ureq",
    "uuid",
];

pub fn check_workspace() -> Result<()> {
    let metadata = command::capture(&mut cargo(["metadata", "--format-version", "1", "--locked"]))?;
    let workspace = Workspace::parse(&metadata)?;
    let mut found = broken_arrows(&workspace);
    let members: BTreeSet<_> = workspace.members.iter().map(|id| workspace.names[id].as_str()).collect();
    for name in PURE_CRATES.iter().filter(|name| members.contains(*name)) {
        // Each is asked alone: in the whole workspace, a shell may switch on a feature of a shared dependency (the logging
        // of jiff, say) that the pure crate does not ask for.
        let tree = ["tree", "--package", name, "--edges", "normal,build", "--target", "all", "--prefix", "depth"];
        let tree = command::capture(cargo(tree).args(["--format", " {p}", "--locked"]))?;
        found.extend(impure_path(&tree).map(|path| format!("{name} is pure and may not reach {}", path.join(" -> "))));
    }
    if !found.is_empty() {
        bail!("the dependency arrows are broken:\n  {}", found.join("\n  "));
    }
    println!("{} crates keep the arrows", members.len());
    Ok(())
}

/// The dependency graph, by package id, with what this check needs to know.
struct Workspace {
    members: BTreeSet<String>,
    names: BTreeMap<String, String>,
    shipped: BTreeMap<String, BTreeSet<String>>,
    for_tests: BTreeMap<String, BTreeSet<String>>,
}

fn broken_arrows(workspace: &Workspace) -> Vec<String> {
    let mut found = Vec::new();
    for id in &workspace.members {
        let name = workspace.names[id].as_str();
        let Some((_, allowed)) = MAY_DEPEND_ON.iter().find(|(known, _)| *known == name) else {
            found.push(format!("{name} is not in the table: add it to MAY_DEPEND_ON in xtask/src/arrows.rs"));
            continue;
        };
        for target in workspace.ours(&workspace.shipped, id) {
            if !allowed.contains(&target) {
                found.push(format!("{name} may not depend on {target}"));
            }
        }
        for target in workspace.ours(&workspace.for_tests, id) {
            if !allowed.contains(&target) && !TESTS_MAY_USE.contains(&target) {
                found.push(format!("the tests of {name} may not depend on {target}"));
            }
        }
    }
    found
}

/// The first way to an impure crate in the output of `cargo tree`, whose lines are `depth name version`.
fn impure_path(tree: &str) -> Option<Vec<&str>> {
    let mut path = Vec::new();
    for line in tree.lines() {
        let mut words = line.split_whitespace();
        let (Some(Ok(depth)), Some(name)) = (words.next().map(str::parse), words.next()) else { continue };
        path.truncate(depth);
        path.push(name);
        if is_impure(name) {
            return Some(path[1..].to_vec());
        }
    }
    None
}

fn is_impure(name: &str) -> bool {
    IMPURE
        .iter()
        .any(|impure| name.strip_prefix(impure).is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_'])))
}

impl Workspace {
    fn ours<'a>(&'a self, edges: &'a BTreeMap<String, BTreeSet<String>>, id: &str) -> impl Iterator<Item = &'a str> {
        let targets = edges.get(id).into_iter().flatten();
        targets.filter(|target| self.members.contains(*target)).map(|target| self.names[target].as_str())
    }

    fn parse(metadata: &str) -> Result<Self> {
        let metadata: Metadata = serde_json::from_str(metadata).context("cannot read what cargo metadata printed")?;
        let mut shipped: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let mut for_tests: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        for node in metadata.resolve.nodes {
            for dependency in node.deps {
                for DependencyKind { kind } in dependency.dep_kinds {
                    // A build dependency can change what is shipped, so it counts like a normal one.
                    let edges = if kind.as_deref() == Some("dev") { &mut for_tests } else { &mut shipped };
                    edges.entry(node.id.clone()).or_default().insert(dependency.pkg.clone());
                }
            }
        }
        let names = metadata.packages.into_iter().map(|package| (package.id, package.name)).collect();
        Ok(Self { members: metadata.workspace_members.into_iter().collect(), names, shipped, for_tests })
    }
}

/// The part of `cargo metadata` that is read here.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Package {
    id: String,
    name: String,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One edge per line: `a -> b`, or `a -dev-> b`. Crates named kerf-* and xtask are members.
    fn check(edges: &str, expected: &[&str]) {
        let mut workspace = Workspace {
            members: BTreeSet::new(),
            names: BTreeMap::new(),
            shipped: BTreeMap::new(),
            for_tests: BTreeMap::new(),
        };
        for line in edges.lines().map(str::trim) {
            let words: Vec<_> = line.split_whitespace().collect();
            for name in words.iter().filter(|word| !word.contains("->")) {
                workspace.names.insert((*name).to_owned(), (*name).to_owned());
                if name.starts_with("kerf-") || *name == "xtask" {
                    workspace.members.insert((*name).to_owned());
                }
            }
            if let [from, arrow, to] = words[..] {
                let edges = if arrow == "-dev->" { &mut workspace.for_tests } else { &mut workspace.shipped };
                edges.entry(from.to_owned()).or_default().insert(to.to_owned());
            }
        }
        assert_eq!(broken_arrows(&workspace), expected);
    }

    #[test]
    fn this_workspace_keeps_the_arrows() {
        check_workspace().unwrap();
    }

    #[test]
    fn the_designed_direction_is_allowed() {
        check(
            "kerf-scheduling -> kerf-model
             kerf-engine -> kerf-scheduling
             kerf-api -> kerf-model
             kerf-api -> kube
             kerf-cli -> kerf-api",
            &[],
        );
    }

    #[test]
    fn an_arrow_against_the_design_is_refused() {
        check("kerf-model -> kerf-api", &["kerf-model may not depend on kerf-api"]);
    }

    #[test]
    fn a_crate_that_nobody_placed_is_refused() {
        check("kerf-new", &["kerf-new is not in the table: add it to MAY_DEPEND_ON in xtask/src/arrows.rs"]);
    }

    #[test]
    fn a_pure_crate_cannot_reach_the_network_through_others() {
        let tree = "0 kerf-lifecycle v0.1.0\n1 serde v1.0.0\n2 serde_derive v1.0.0 (proc-macro)\n1 schemas v1.0.0\n2 client v2.0.0\n3 tokio-util v0.7.0";
        assert_eq!(impure_path(tree).unwrap(), ["schemas", "client", "tokio-util"]);
        assert_eq!(impure_path("0 kerf-model v0.1.0\n1 thiserror v2.0.0\n"), None);
    }

    #[test]
    fn the_test_kit_is_for_tests_only() {
        check("kerf-disruption -dev-> kerf-testkit", &[]);
        check("kerf-controller -> kerf-testkit", &["kerf-controller may not depend on kerf-testkit"]);
    }

    #[test]
    fn names_that_only_begin_alike_are_not_impure() {
        for (name, expected) in
            [("log", true), ("logos", false), ("kube-client", true), ("rand_core", true), ("randomize", false)]
        {
            assert_eq!(is_impure(name), expected, "{name}");
        }
    }
}
