//! The programs of a bed: which versions, built from where, started how.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::state::{Layout, Ports};

pub const KUBERNETES_VERSION: &str = "1.36.3";
pub const ETCD_VERSION: &str = "3.6.8";
pub const KWOK_VERSION: &str = "0.8.0";

/// Something that `go build` makes from one of the modules in `tests/testbed`.
pub struct Binary {
    pub name: &'static str,
    /// Folder of the Go module, below `tests/testbed`.
    pub module: &'static str,
    pub package: &'static str,
    /// Kubernetes learns its version from the linker; without it clients see v0.0.0.
    pub stamped: bool,
}

/// The largest last would look nicer, but etcd and the API server fail first when something is wrong with the machine.
pub const BINARIES: &[Binary] = &[
    Binary { name: "keygen", module: "keygen", package: ".", stamped: false },
    Binary { name: "etcd", module: "kubernetes", package: "go.etcd.io/etcd/server/v3", stamped: false },
    kubernetes("kube-apiserver", "k8s.io/kubernetes/cmd/kube-apiserver"),
    kubernetes("kube-controller-manager", "k8s.io/kubernetes/cmd/kube-controller-manager"),
    kubernetes("kube-scheduler", "k8s.io/kubernetes/cmd/kube-scheduler"),
    kubernetes("kubectl", "k8s.io/kubernetes/cmd/kubectl"),
    Binary { name: "kwok", module: "kwok", package: "sigs.k8s.io/kwok/cmd/kwok", stamped: false },
];

const fn kubernetes(name: &'static str, package: &'static str) -> Binary {
    Binary { name, module: "kubernetes", package, stamped: true }
}

impl Binary {
    pub fn linker_flags(&self) -> String {
        let mut flags = "-s -w".to_owned();
        if self.stamped {
            let mut numbers = KUBERNETES_VERSION.split('.');
            let (major, minor) = (numbers.next().unwrap_or_default(), numbers.next().unwrap_or_default());
            let stamps = [
                ("gitVersion", format!("v{KUBERNETES_VERSION}")),
                ("gitMajor", major.into()),
                ("gitMinor", minor.into()),
            ];
            for (name, value) in stamps {
                flags.push_str(&format!(" -X k8s.io/component-base/version.{name}={value}"));
            }
        }
        flags
    }
}

/// What a bed was started with. Recorded with it, because another checkout may pin others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    pub kubernetes: String,
    pub etcd: String,
    pub kwok: String,
}

impl Versions {
    /// Those that this checkout builds.
    pub fn pinned() -> Self {
        Self { kubernetes: KUBERNETES_VERSION.into(), etcd: ETCD_VERSION.into(), kwok: KWOK_VERSION.into() }
    }
}

/// A process of a running bed, in the order in which they start. They stop in the opposite order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
pub enum Part {
    #[serde(rename = "etcd")]
    #[value(name = "etcd")]
    Etcd,
    #[serde(rename = "kube-apiserver")]
    #[value(name = "kube-apiserver")]
    ApiServer,
    #[serde(rename = "kube-controller-manager")]
    #[value(name = "kube-controller-manager")]
    ControllerManager,
    #[serde(rename = "kube-scheduler")]
    #[value(name = "kube-scheduler")]
    Scheduler,
    #[serde(rename = "kwok")]
    #[value(name = "kwok")]
    Kwok,
}

impl Part {
    pub const ALL: [Self; 5] = [Self::Etcd, Self::ApiServer, Self::ControllerManager, Self::Scheduler, Self::Kwok];

    /// Also the name of its binary and of its log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::ApiServer => "kube-apiserver",
            Self::ControllerManager => "kube-controller-manager",
            Self::Scheduler => "kube-scheduler",
            Self::Kwok => "kwok",
        }
    }

    pub fn version(self, versions: &Versions) -> &str {
        match self {
            Self::Etcd => &versions.etcd,
            Self::ApiServer | Self::ControllerManager | Self::Scheduler => &versions.kubernetes,
            Self::Kwok => &versions.kwok,
        }
    }

    /// The port that answers for it; the controller manager serves nothing.
    pub fn port(self, ports: &Ports) -> Option<u16> {
        match self {
            Self::Etcd => Some(ports.etcd),
            Self::ApiServer => Some(ports.api_server),
            Self::ControllerManager => None,
            Self::Scheduler => Some(ports.scheduler),
            Self::Kwok => Some(ports.kwok),
        }
    }

    pub fn arguments(self, layout: &Layout, ports: &Ports) -> Vec<String> {
        match self {
            Self::Etcd => etcd(layout, ports),
            Self::ApiServer => api_server(layout, ports),
            Self::ControllerManager => controller_manager(layout),
            Self::Scheduler => scheduler(layout, ports),
            Self::Kwok => kwok(layout, ports),
        }
    }
}

fn etcd(layout: &Layout, ports: &Ports) -> Vec<String> {
    let client = format!("http://127.0.0.1:{}", ports.etcd);
    let peer = format!("http://127.0.0.1:{}", ports.etcd_peer);
    vec![
        option("name", "bed"),
        path_option("data-dir", &layout.etcd_data()),
        option("listen-client-urls", &client),
        option("advertise-client-urls", &client),
        option("listen-peer-urls", &peer),
        option("initial-advertise-peer-urls", &peer),
        option("initial-cluster", &format!("bed={peer}")),
        // A bed that loses its data in a power cut is made again; waiting for the disk would slow every test.
        option("unsafe-no-fsync", "true"),
        option("quota-backend-bytes", "4294967296"),
    ]
}

fn api_server(layout: &Layout, ports: &Ports) -> Vec<String> {
    vec![
        option("etcd-servers", &format!("http://127.0.0.1:{}", ports.etcd)),
        option("bind-address", "127.0.0.1"),
        option("advertise-address", "127.0.0.1"),
        option("secure-port", &ports.api_server.to_string()),
        // Nothing in a bed reaches the API server by its service, and a loopback endpoint would be refused anyway.
        option("endpoint-reconciler-type", "none"),
        // It writes its own certificate there, with the address in it: clients verify it like any other.
        path_option("cert-dir", &layout.certificates()),
        path_option("service-account-key-file", &layout.service_account_public_key()),
        path_option("service-account-signing-key-file", &layout.service_account_key()),
        option("service-account-issuer", "https://kubernetes.default.svc"),
        path_option("token-auth-file", &layout.tokens()),
        option("authorization-mode", "RBAC"),
        option("service-cluster-ip-range", "10.0.0.0/24"),
        option("allow-privileged", "true"),
    ]
}

fn controller_manager(layout: &Layout) -> Vec<String> {
    vec![
        path_option("kubeconfig", &layout.kubeconfig()),
        path_option("service-account-private-key-file", &layout.service_account_key()),
        path_option("root-ca-file", &layout.certificate()),
        option("use-service-account-credentials", "true"),
        option("leader-elect", "false"),
        // Those that need a cloud or a network of their own.
        option(
            "controllers",
            "*,-nodeipam,-node-route-controller,-service-lb-controller,-cloud-node-lifecycle-controller",
        ),
        option("secure-port", "0"),
        option("kube-api-qps", "500"),
        option("kube-api-burst", "1000"),
    ]
}

fn scheduler(layout: &Layout, ports: &Ports) -> Vec<String> {
    vec![
        path_option("kubeconfig", &layout.kubeconfig()),
        option("leader-elect", "false"),
        option("bind-address", "127.0.0.1"),
        option("secure-port", &ports.scheduler.to_string()),
        // The API server's certificate is good for this address too, so the same kubeconfig can ask whether it is ready.
        path_option("tls-cert-file", &layout.certificate()),
        path_option("tls-private-key-file", &layout.certificates().join("apiserver.key")),
        option("kube-api-qps", "500"),
        option("kube-api-burst", "1000"),
    ]
}

fn kwok(layout: &Layout, ports: &Ports) -> Vec<String> {
    vec![
        path_option("config", &layout.kwok_configuration()),
        path_option("kubeconfig", &layout.kubeconfig()),
        option("server-address", &format!("127.0.0.1:{}", ports.kwok)),
    ]
}

/// The parallelism must be named: a configuration file without it means 0, with which no controller of kwok starts.
/// Without the addresses, nodes and pods have none; nothing listens on them.
pub const KWOK_CONFIGURATION: &str = "\
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  enableCRDs: [Stage]
  manageAllNodes: false
  cidr: 10.244.0.1/16
  nodeIP: 192.0.2.1
  manageNodesWithLabelSelector: kwok-partition=a
  manageNodesWithAnnotationSelector: kwok.x-k8s.io/node=fake
  nodeLeaseDurationSeconds: 40
  nodeLeaseParallelism: 4
  podPlayStageParallelism: 4
  nodePlayStageParallelism: 4
";

fn option(name: &str, value: &str) -> String {
    format!("--{name}={value}")
}

fn path_option(name: &str, value: &Path) -> String {
    format!("--{name}={}", value.display())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testbed::build::module_directory;

    #[test]
    fn the_versions_named_here_are_those_that_the_go_modules_pin() {
        let pins = [
            ("kubernetes", format!("k8s.io/kubernetes v{KUBERNETES_VERSION} ")),
            ("kubernetes", format!("go.etcd.io/etcd/server/v3 v{ETCD_VERSION} ")),
            ("kwok", format!("sigs.k8s.io/kwok v{KWOK_VERSION}")),
        ];
        for (module, pin) in pins {
            let text = std::fs::read_to_string(module_directory(module).join("go.mod")).unwrap();
            assert!(text.contains(&pin), "{module}/go.mod does not contain {pin:?}");
        }
    }

    #[test]
    fn every_command_that_is_built_is_a_tool_of_its_module() {
        for binary in BINARIES.iter().filter(|binary| binary.package != ".") {
            let text = std::fs::read_to_string(module_directory(binary.module).join("go.mod")).unwrap();
            let as_tool = |line: &str| line.trim().trim_start_matches("tool ") == binary.package;
            assert!(text.lines().any(as_tool), "{} is no tool of {}/go.mod", binary.package, binary.module);
        }
    }

    #[test]
    fn kubernetes_is_stamped_with_its_version() {
        let flags = BINARIES[2].linker_flags();
        for stamp in ["gitVersion=v1.36.3", "gitMajor=1", "gitMinor=36"] {
            assert!(flags.contains(&format!("-X k8s.io/component-base/version.{stamp}")), "{flags}");
        }
        assert_eq!(BINARIES[1].linker_flags(), "-s -w");
    }

    #[test]
    fn every_part_is_a_binary_that_is_built() {
        for part in Part::ALL {
            assert!(BINARIES.iter().any(|binary| binary.name == part.name()), "{}", part.name());
        }
    }

    #[test]
    fn every_part_listens_on_loopback_only() {
        let layout = Layout::at("/bed".into());
        let ports = Ports { etcd: 1, etcd_peer: 2, api_server: 3, scheduler: 4, kwok: 5 };
        for part in Part::ALL {
            for argument in part.arguments(&layout, &ports) {
                let listens = ["listen-", "bind-address", "server-address"].iter().any(|word| argument.contains(word));
                assert!(!listens || argument.contains("127.0.0.1"), "{} {argument}", part.name());
            }
        }
    }
}
