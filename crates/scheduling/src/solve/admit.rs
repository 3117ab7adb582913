//! What stands before the first attempt: which pods are tried, in which order, and what each asks for.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use kerf_model::cluster::{Pod, PodConstraints};
use kerf_model::requirement::Requirements;
use kerf_model::resources::ResourceName;

use super::{HeldKind, KindMemo, Memo, Queued, Solver};
use crate::amounts::Lists;
use crate::intake::{check_pod, opts_out};
use crate::known::KnownPod;
use crate::prepared::has_rules;
use crate::problem::Policy;
use crate::refusal::{Feature, Overall, Unplaced};
use crate::shape::{Kind, KindSource, Shape};
use crate::topology::{Memberships, OwnGroups};
use crate::volumes::VolumeNeeds;

/// A pod that is tried.
struct Admitted<'q> {
    pod: &'q Arc<Pod>,
    list: usize,
    known: Option<KnownPod>,
    volumes: Option<VolumeNeeds>,
}

/// What tells one kind from another: constraints, namespace where it matters, membership, places of volumes.
type KindKey<'q> = (usize, Option<&'q Arc<str>>, usize, Option<Vec<Requirements>>);

impl<'b> Solver<'b, '_> {
    /// Turns away what cannot be tried, and gives the others their shapes, the largest pod first.
    ///
    /// O(pods × log pods); constraints are compiled once per kind.
    pub(super) fn admit(&mut self) -> VecDeque<Queued<'b>> {
        let base = self.base;
        let mut lists = Lists::default();
        // By request of the cluster's pods: its place among those of this question.
        let mut of_known: BTreeMap<usize, usize> = BTreeMap::new();
        let mut checked: BTreeMap<*const PodConstraints, Result<(), Overall>> = BTreeMap::new();
        let mut admitted = Vec::with_capacity(self.question.pods.len());
        for pod in &self.question.pods {
            // A pod that runs was found fit once; only what waits is examined. Pods alike are examined once.
            let is_fit = match pod.node_name {
                Some(_) => &Ok(()),
                None => checked.entry(Arc::as_ptr(&pod.constraints)).or_insert_with(|| self.examine(pod)),
            };
            let volumes = is_fit.clone().and_then(|()| self.volumes_of(pod));
            let known = base.known.pod(pod);
            match volumes {
                Ok(volumes) => {
                    let list = match known.map(|known| base.known.shapes[known.shape as usize].shape.request) {
                        None => lists.intern(&pod.requests),
                        Some(request) => {
                            *of_known.entry(request).or_insert_with(|| lists.intern(base.known.lists[request]))
                        }
                    };
                    admitted.push(Admitted { pod, list, known, volumes });
                }
                Err(overall) => self.unplaced.push((Arc::clone(pod), Arc::new(Unplaced::overall(overall)))),
            }
        }
        self.sort(&mut admitted, &lists);
        self.requests = lists.lists.iter().map(|list| Cow::Owned(base.index.asked(list))).collect();
        for (request, list) in of_known {
            self.requests[list] = Cow::Borrowed(&base.known.requests[request]);
        }
        self.lists = lists.lists;
        self.forget_running(&admitted);
        self.give_shapes(admitted)
    }

    fn examine(&self, pod: &Pod) -> Result<(), Overall> {
        if opts_out(pod) {
            return Err(Overall::OptedOut);
        }
        check_pod(pod, self.base.supply.rules).map_err(Overall::Invalid)
    }

    fn volumes_of(&self, pod: &Pod) -> Result<Option<VolumeNeeds>, Overall> {
        if pod.uses_resource_claims {
            return Err(Overall::NotSupportedYet(Feature::ResourceClaims));
        }
        if pod.volumes.is_empty() {
            return Ok(None);
        }
        VolumeNeeds::of(pod, self.base.cluster, self.base.supply.rules).map(Some).map_err(Overall::Invalid)
    }

    /// The largest first, then the oldest. The best policy lets important pods choose before all others.
    fn sort(&self, admitted: &mut Vec<Admitted<'b>>, lists: &Lists<'b>) {
        let size = |at: &usize| {
            let amount = |name: ResourceName| Reverse(lists.lists[*at].amount(name.as_str()));
            (amount(ResourceName::CPU), amount(ResourceName::MEMORY))
        };
        let mut order: Vec<usize> = (0..lists.lists.len()).collect();
        order.sort_by_cached_key(size);
        let mut ranks = vec![0_usize; order.len()];
        for pair in order.windows(2) {
            ranks[pair[1]] = ranks[pair[0]] + usize::from(size(&pair[0]) != size(&pair[1]));
        }
        let by_priority = self.base.supply.options.policy == Policy::Best;
        admitted.sort_by_cached_key(|Admitted { pod, list, .. }| {
            let priority = Reverse(if by_priority { pod.priority } else { 0 });
            (priority, ranks[*list], pod.meta.created, beginning(&pod.meta.uid), &pod.meta.uid)
        });
        admitted.dedup_by(|a, b| a.pod.meta.name == b.pod.meta.name);
    }

    /// Pods that run and are to be placed anew count where they are placed.
    fn forget_running(&mut self, admitted: &[Admitted<'b>]) {
        let base = self.base;
        if base.topology.is_empty() {
            return;
        }
        let mut memberships = Memberships::default();
        let turned_away = self.unplaced.iter().map(|(pod, _)| (pod, base.known.pod(pod)));
        let all = admitted.iter().map(|one| (one.pod, one.known)).chain(turned_away);
        for (pod, known) in all.filter(|(pod, _)| pod.is_active()) {
            base.tell_places(pod, known, &mut memberships, |id, place| self.counts.forget(id, place));
        }
    }

    fn give_shapes(&mut self, admitted: Vec<Admitted<'b>>) -> VecDeque<Queued<'b>> {
        let base = self.base;
        let none = OwnGroups::default();
        let mut memberships = Memberships::default();
        let mut constraint_ids: BTreeMap<&PodConstraints, usize> = BTreeMap::new();
        let mut by_pointer: BTreeMap<*const PodConstraints, usize> = BTreeMap::new();
        let mut kinds: BTreeMap<KindKey<'b>, usize> = BTreeMap::new();
        let mut shapes: BTreeMap<Shape, usize> = BTreeMap::new();
        let mut queue = VecDeque::with_capacity(admitted.len());
        // By number among the cluster's: kinds and shapes of this question.
        let mut of_known: (BTreeMap<usize, usize>, BTreeMap<u32, usize>) = Default::default();
        for Admitted { pod, list, known, volumes } in admitted {
            if let Some(KnownPod { shape: number, .. }) = known {
                let of_kind = base.known.shapes[number as usize].shape.kind;
                let kind = *of_known.0.entry(of_kind).or_insert_with(|| {
                    self.kinds.push(HeldKind::Known(&base.known.kinds[of_kind]));
                    self.kinds.len() - 1
                });
                let shape = *of_known.1.entry(number).or_insert_with(|| {
                    self.shapes.push(Shape { kind, request: list });
                    self.known.push(Some(number));
                    self.shapes.len() - 1
                });
                queue.push_back(Queued { pod, shape, attached: None });
                continue;
            }
            let pointer = Arc::as_ptr(&pod.constraints);
            let constraints = *by_pointer.entry(pointer).or_insert_with(|| {
                let next = constraint_ids.len();
                *constraint_ids.entry(&pod.constraints).or_insert(next)
            });
            let namespace = has_rules(&pod.constraints).then_some(&pod.meta.name.namespace);
            let membership = match base.topology.is_empty() {
                true => 0,
                false => memberships.id(pod, &base.topology, base.cluster),
            };
            let places = volumes.as_ref().map(|volumes| volumes.places.clone());
            let key = (constraints, namespace, membership, places);
            let kind = match kinds.get(&key) {
                Some(kind) => *kind,
                None => {
                    let own = namespace.and_then(|namespace| base.topology.own_groups(&pod.constraints, namespace));
                    let nothing = crate::topology::Membership::default();
                    let source = KindSource {
                        constraints: &pod.constraints,
                        membership: memberships.all.get(membership).unwrap_or(&nothing),
                        own: own.unwrap_or(&none),
                        places: key.3.as_deref().unwrap_or_default(),
                    };
                    let compiled = Kind::compile(&source, base.relaxing, &mut self.sets, base.supply.rules);
                    self.kinds.push(HeldKind::Own(Box::new(compiled)));
                    kinds.insert(key, self.kinds.len() - 1);
                    self.kinds.len() - 1
                }
            };
            let shape = Shape { kind, request: list };
            let shape = *shapes.entry(shape).or_insert_with(|| {
                self.shapes.push(shape);
                self.known.push(None);
                self.shapes.len() - 1
            });
            let attached = volumes.map(|volumes| volumes.attached).filter(|attached| !attached.is_empty()).map(|own| {
                self.attached.push(own);
                self.attached.len() - 1
            });
            queue.push_back(Queued { pod, shape, attached });
        }
        for kind in &self.kinds {
            self.kind_memos.push(kind.levels.iter().map(|_| KindMemo::default()).collect());
        }
        for shape in &self.shapes {
            self.memos.push(self.kinds[shape.kind].levels.iter().map(|_| Memo::default()).collect());
        }
        queue
    }
}

/// The first bytes of a text, ordered as the text is: most texts are told apart without looking them up.
fn beginning(text: &str) -> u128 {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(text.bytes()).for_each(|(to, from)| *to = from);
    u128::from_be_bytes(bytes)
}
