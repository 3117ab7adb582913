//! What a round knows before it chooses anything.

use std::sync::Arc;

use kerf_model::cluster::Pod;

use crate::View;
use crate::pdb::{PdbUse, Pdbs};
use crate::subject::Subject;
use crate::windows::Windows;

pub(crate) struct Context<'a> {
    pub(crate) view: View<'a>,
    /// Every claim of ours, by name.
    pub(crate) subjects: Vec<Subject<'a>>,
    pub(crate) pdbs: Pdbs<'a>,
    pub(crate) windows: Windows<'a>,
}

impl<'a> Context<'a> {
    pub(crate) fn new(view: &View<'a>) -> Self {
        let pdbs = Pdbs::of(view.snapshot);
        Self { view: *view, subjects: Subject::all(view, &pdbs), windows: Windows::of(view.snapshot, view.now), pdbs }
    }

    /// The pods that need another place if the node goes, and may be moved. One that its owner protects, or whose budget
    /// never allows an eviction, stays until a deadline: a place for it now would stay empty.
    pub(crate) fn moving(&self, subject: &Subject<'a>) -> Vec<Arc<Pod>> {
        let now = self.view.now;
        let may_move = |pod: &&Arc<Pod>| !pod.is_protected(now) && !self.pdbs.blocks_for_ever(pod, now);
        subject.reschedulable().filter(may_move).cloned().collect()
    }

    pub(crate) fn index_of(&self, claim: &str) -> Option<usize> {
        self.subjects.binary_search_by(|subject| (**subject.name()).cmp(claim)).ok()
    }

    pub(crate) fn subject(&self, claim: &str) -> Option<&Subject<'a>> {
        self.index_of(claim).map(|at| &self.subjects[at])
    }

    /// What evictions the node asks its pods' budgets for.
    pub(crate) fn pdb_use(&self, subject: &Subject<'a>) -> PdbUse<'a> {
        let mut uses = PdbUse::new();
        for pod in &subject.pods {
            self.pdbs.count(pod, self.view.now, &mut uses);
        }
        uses
    }
}
