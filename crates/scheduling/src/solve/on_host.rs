//! Pods on hosts that exist or are coming.

use kerf_model::label;
use kerf_model::requirement::Requirements;
use kerf_model::taint::tolerates;

use super::{Attempt, Miss, Queued, Solver, conflict};
use crate::amounts::fits;
use crate::existing::meets;
use crate::prepared::BLOCK;
use crate::volumes::Attached;

impl Solver<'_, '_> {
    /// On the first host that can. Blocks of hosts without room are passed over: O(blocks + hosts with room).
    pub(super) fn place_on_host(&mut self, queued: &Queued, attempt: Attempt) -> bool {
        let Attempt { shape, level, .. } = attempt;
        let moves = queued.pod.node_name.is_some() && !self.question.from_leaving.contains(&queued.pod.meta.uid);
        let mut memo = std::mem::take(&mut self.memos[shape][level]);
        let resources = self.base.index.len();
        let usable = self.base.hosts.usable;
        let mut found = None;
        let mut at = memo.hosts_from;
        // Whether all before were final.
        let mut is_final = true;
        while at < usable {
            let block = at / BLOCK;
            let most = &self.base.blocks[block * resources..(block + 1) * resources];
            if at.is_multiple_of(BLOCK) && !fits(self.request_of(shape).as_slice(), most) {
                at = (block + 1) * BLOCK;
                if is_final {
                    memo.hosts_from = at.min(usable);
                }
                continue;
            }
            let is_dead = memo.hosts.contains(at) || self.excluded.contains(at);
            let is_closed = moves && self.closed.contains(at);
            if !is_dead && !is_closed {
                match self.fit_host(at, attempt) {
                    Ok(()) => {
                        found = Some(at);
                        break;
                    }
                    Err(Miss::Never | Miss::Full) => memo.hosts.insert(at),
                    Err(Miss::ForNow) => is_final = false,
                }
            } else if !is_dead {
                is_final = false;
            }
            at += 1;
            if is_final {
                memo.hosts_from = at;
            }
        }
        self.memos[shape][level] = memo;
        let Some(at) = found else { return false };
        self.add_to_host(at, queued);
        true
    }

    fn room(&self, at: usize) -> &[i64] {
        let resources = self.base.index.len();
        &self.rooms[at * resources..(at + 1) * resources]
    }

    fn fit_host(&mut self, at: usize, attempt: Attempt) -> Result<(), Miss> {
        if !fits(self.request_of(attempt.shape).as_slice(), self.room(at)) {
            return Err(Miss::Full);
        }
        self.learn_class(at, attempt);
        let host = &self.base.hosts.all[at];
        let kind = self.kind_of(attempt.shape);
        let level = &kind.levels[attempt.level];
        let known = &self.kind_memos[self.shapes[attempt.shape].kind][attempt.level].classes[host.class];
        let terms = known.as_deref().unwrap_or_default();
        if terms.is_empty() {
            return Err(Miss::Never);
        }
        if !kind.ports.is_empty() {
            let placed = self.on_hosts.get(&at).is_some_and(|state| conflict(&state.ports, &kind.ports));
            if placed || conflict(&host.ports, &kind.ports) {
                return Err(Miss::Never);
            }
        }
        if level.rules.is_empty() && terms.iter().any(|term| self.names_host(at, attempt, *term)) {
            return self.fit_volumes(at, attempt);
        }
        let allows = |term: &usize| {
            self.names_host(at, attempt, *term) && self.counts.host_allows(&level.rules, at, level.terms[*term].strict)
        };
        match terms.iter().any(allows) {
            true => self.fit_volumes(at, attempt),
            false if level.rules.is_empty() => Err(Miss::Never),
            false => Err(Miss::ForNow),
        }
    }

    /// Whether a term that asks for certain host names asks for this one.
    fn names_host(&self, at: usize, attempt: Attempt, term: usize) -> bool {
        let set = self.sets.get(self.level(attempt).terms[term].all);
        set.get(label::HOSTNAME).is_none_or(|asked| asked.has(&self.base.hosts.all[at].hostname))
    }

    /// Finds out which terms hold on all hosts of a class, once per kind.
    fn learn_class(&mut self, at: usize, attempt: Attempt) {
        let (class, kind) = (self.base.hosts.all[at].class, self.shapes[attempt.shape].kind);
        let known = &mut self.kind_memos[kind][attempt.level].classes;
        if known.is_empty() {
            known.resize_with(self.base.hosts.classes.len(), || None);
        }
        if known[class].is_some() {
            return;
        }
        let level = &self.kinds[kind].levels[attempt.level];
        let own = &self.base.hosts.classes[class];
        let terms: Vec<usize> = match tolerates(&own.taints, &level.tolerations) {
            Err(_) => Vec::new(),
            Ok(()) => {
                let holds = |at: &usize| {
                    let asked = self.sets.get(level.terms[*at].all);
                    meets(&own.labels, &without_host_name(asked)).is_ok()
                };
                (0..level.terms.len()).filter(holds).collect()
            }
        };
        self.kind_memos[kind][attempt.level].classes[class] = Some(terms);
    }

    /// Whether the pod's volumes can be attached; what was attached before is looked up once per host.
    fn fit_volumes(&mut self, at: usize, attempt: Attempt) -> Result<(), Miss> {
        let Some(asked) = attempt.attached else { return Ok(()) };
        let cluster = self.base.cluster;
        let host = &self.base.hosts.all[at];
        let Some(node) = host.node else { return Ok(()) };
        let state = self.on_hosts.entry(at).or_default();
        let attached = state.attached.get_or_insert_with(|| {
            let pods = cluster.pods_on(node.name()).filter(|pod| !pod.is_terminal());
            Attached::by(pods, cluster)
        });
        let csi = cluster.csi_node(node.name());
        // What the node has not published yet, its type tells (sheet 08, S3).
        let of_type = || {
            let (template, _) = host.usage.as_ref()?;
            let name = node.meta.label(label::INSTANCE_TYPE)?;
            let row = self.base.templates[*template].types.iter().find(|row| &*row.kind.name == name)?;
            Some(&row.kind.volume_limits)
        };
        let limit_of = |driver: &str| match csi {
            Some(csi) if csi.drivers.iter().any(|own| &**own == driver) => csi.limits.get(driver).copied(),
            Some(csi) if csi.limits.contains_key(driver) => csi.limits.get(driver).copied(),
            Some(_) | None => of_type().and_then(|limits| limits.get(driver)).copied(),
        };
        if attached.has_room_for(&self.attached[asked], limit_of) { Ok(()) } else { Err(Miss::ForNow) }
    }

    fn add_to_host(&mut self, at: usize, queued: &Queued) {
        let resources = self.base.index.len();
        let shape = self.shapes[queued.shape];
        let room = &mut self.rooms[at * resources..(at + 1) * resources];
        for (room, asked) in room.iter_mut().zip(self.requests[shape.request].as_slice()) {
            *room = room.saturating_sub(*asked);
        }
        let kind = &self.kinds[shape.kind];
        let state = self.on_hosts.entry(at).or_default();
        state.ports.extend_from_slice(&kind.ports);
        if let (Some(attached), Some(more)) = (&mut state.attached, queued.attached) {
            attached.extend(&self.attached[more]);
        }
        state.pods.push(queued.pod.clone());
        let class = &self.base.hosts.classes[self.base.hosts.all[at].class];
        let groups = kind.membership.counted_in.iter().chain(&kind.announces).copied();
        self.counts.record_on_host(groups, at, |group| group.accepts_host(&class.labels, &class.taints));
        self.placed += 1;
    }
}

fn without_host_name(asked: &Requirements) -> std::borrow::Cow<'_, Requirements> {
    if asked.get(label::HOSTNAME).is_none() {
        return std::borrow::Cow::Borrowed(asked);
    }
    let mut rest = Requirements::new();
    asked.iter().filter(|own| &**own.key() != label::HOSTNAME).for_each(|own| rest.narrow(own.clone()));
    std::borrow::Cow::Owned(rest)
}
