//! The order in which pods leave (sheet 04 §4.5).

use kerf_model::cluster::Pod;

/// Workloads before the daemons that serve them, ordinary pods before those that the cluster lives on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    Workload,
    Daemon,
    CriticalWorkload,
    CriticalDaemon,
}

/// Exactly these classes; a high number of one's own does not make a pod critical.
const CRITICAL: [&str; 2] = ["system-cluster-critical", "system-node-critical"];

impl Group {
    pub fn of(pod: &Pod) -> Self {
        let critical = pod.priority_class.as_deref().is_some_and(|class| CRITICAL.contains(&class));
        match (critical, pod.is_of_daemon_set()) {
            (false, false) => Self::Workload,
            (false, true) => Self::Daemon,
            (true, false) => Self::CriticalWorkload,
            (true, true) => Self::CriticalDaemon,
        }
    }
}
