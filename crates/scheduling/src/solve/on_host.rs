//! Pods on hosts that exist or are coming.

use std::sync::Arc;

use kerf_model::cluster::Pod;
use kerf_model::label;
use kerf_model::requirement::Requirements;
use kerf_model::taint::tolerates;

use super::{Attempt, Memo, Miss, OnHostState, Queued, Solver, conflict};
use crate::amounts::fits;
use crate::bits::Bits;
use crate::counts::Gate;
use crate::existing::{HostClass, meets};
use crate::known::KnownShape;
use crate::prepared::{BLOCK, Base};
use crate::sets::Sets;
use crate::shape::Level;
use crate::volumes::Attached;

impl<'b> Solver<'b, '_> {
    /// On the first host that can.
    ///
    /// Hosts that have no room or not the labels are out from the start, those whose place a rule forbids are passed over
    /// 64 at a time: O(hosts / 64 + hosts looked at).
    pub(super) fn place_on_host(&mut self, queued: Queued<'b>, attempt: Attempt) -> bool {
        let Attempt { shape, level, .. } = attempt;
        let words = self.base.hosts.usable.div_ceil(BLOCK);
        if self.memos[shape][level].hosts_from == words {
            return false;
        }
        let moves = self.only_moves(queued.pod);
        let mut memo = std::mem::take(&mut self.memos[shape][level]);
        let gate = self.gate(attempt);
        let mut found = None;
        // Whether all words before were empty.
        let mut is_final = true;
        'hosts: for word in memo.hosts_from..words {
            self.open_word(&mut memo, attempt, word);
            let closed = if moves { self.closed.word(word) | self.departed.closed.word(word) } else { 0 };
            let mut live = memo.open_hosts[word] & !closed;
            if live != 0 {
                live &= gate.as_ref().map_or(u64::MAX, |gate| self.counts.word(gate, word));
            }
            while live != 0 {
                let bit = live & live.wrapping_neg();
                live ^= bit;
                let at = word * BLOCK + bit.trailing_zeros() as usize;
                match self.fit_host(at, attempt) {
                    Ok(()) => {
                        found = Some(at);
                        break 'hosts;
                    }
                    Err(Miss::Never | Miss::Full) => memo.open_hosts[word] &= !bit,
                    Err(Miss::ForNow) => {}
                }
            }
            is_final &= memo.open_hosts[word] == 0;
            if is_final {
                memo.hosts_from = word + 1;
            }
        }
        self.memos[shape][level] = memo;
        let Some(at) = found else { return false };
        self.add_to_host(at, queued);
        true
    }

    /// Whether the pod runs somewhere and could stay there.
    pub(super) fn only_moves(&self, pod: &Pod) -> bool {
        pod.node_name.is_some() && !self.question.from_leaving.contains(&pod.meta.uid)
    }

    /// What the rules of the attempt say about whole domains.
    pub(super) fn gate(&mut self, attempt: Attempt) -> Option<Gate> {
        let level = &self.kinds[self.shapes[attempt.shape].kind].levels[attempt.level];
        if level.rules.is_empty() {
            return None;
        }
        level.terms.iter().for_each(|term| self.counts.prepare(term.strict, &self.sets));
        match level.terms[..] {
            [ref term] => Some(self.counts.gate(&level.rules, term.strict)),
            // With alternatives, every host is asked.
            _ => None,
        }
    }

    /// Finds out which of 64 hosts may take one of these pods.
    fn open_word(&mut self, memo: &mut Memo, attempt: Attempt, word: usize) {
        if memo.open_hosts.len() > word {
            return;
        }
        if let (Some(known), true) = (self.known[attempt.shape], self.base.is_shared) {
            let hosts = self.base.hosts_for(known as usize, attempt.level);
            memo.open_hosts.extend((0..hosts.words()).map(|word| hosts.word(word) & !self.excluded.word(word)));
            memo.open_hosts.resize(memo.open_hosts.len().max(word + 1), 0);
            return;
        }
        let request = self.requests[self.shapes[attempt.shape].request].clone();
        let resources = self.base.index.len();
        let mut open = 0;
        if fits(request.as_slice(), &self.base.blocks[word * resources..(word + 1) * resources]) {
            for at in word * BLOCK..self.base.hosts.usable.min((word + 1) * BLOCK) {
                let room = &self.base.hosts.rooms[at * resources..(at + 1) * resources];
                if fits(request.as_slice(), room) && !self.terms_on(at, attempt).is_empty() {
                    open |= 1 << (at % BLOCK);
                }
            }
        }
        memo.open_hosts.push(open & !self.excluded.word(word));
    }

    fn room(&self, at: usize) -> &[i64] {
        if self.touched.contains(at)
            && let Some(state) = self.on_hosts.get(&at)
        {
            return &state.room;
        }
        self.departed.room(at).unwrap_or_else(|| self.base.room(at))
    }

    fn state(&mut self, at: usize) -> &mut OnHostState {
        let (base, departed) = (self.base, self.departed);
        let room = departed.room(at).unwrap_or_else(|| base.room(at));
        self.touched.insert(at);
        let new = || OnHostState { room: room.to_vec(), pods: Vec::new(), ports: Vec::new(), attached: None };
        self.on_hosts.entry(at).or_insert_with(new)
    }

    fn fit_host(&mut self, at: usize, attempt: Attempt) -> Result<(), Miss> {
        if !fits(self.request_of(attempt.shape).as_slice(), self.room(at)) {
            return Err(Miss::Full);
        }
        self.learn_class(at, attempt);
        let host = &self.base.hosts.all[at];
        let kind = self.kind_of(attempt.shape);
        let level = &kind.levels[attempt.level];
        let terms = self.terms_of_class(host.class, attempt);
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

    fn terms_on(&mut self, at: usize, attempt: Attempt) -> &[usize] {
        self.learn_class(at, attempt);
        self.terms_of_class(self.base.hosts.all[at].class, attempt)
    }

    fn terms_of_class(&self, class: usize, attempt: Attempt) -> &[usize] {
        let known = &self.kind_memos[self.shapes[attempt.shape].kind][attempt.level].classes;
        known.get(class).and_then(Option::as_deref).unwrap_or_default()
    }

    /// Finds out which terms hold on all hosts of a class, once per kind.
    fn learn_class(&mut self, at: usize, attempt: Attempt) {
        let (class, kind) = (self.base.hosts.all[at].class, self.shapes[attempt.shape].kind);
        let known = &mut self.kind_memos[kind][attempt.level].classes;
        if known.is_empty() {
            known.resize_with(self.base.hosts.classes.len(), || None);
        }
        if known[class].is_none() {
            let level = &self.kinds[kind].levels[attempt.level];
            let terms = terms_that_hold(&self.base.hosts.classes[class], level, &self.sets);
            self.kind_memos[kind][attempt.level].classes[class] = Some(terms);
        }
    }

    /// Whether the pod's volumes can be attached; what was attached before is looked up once per host.
    fn fit_volumes(&mut self, at: usize, attempt: Attempt) -> Result<(), Miss> {
        let Some(asked) = attempt.attached else { return Ok(()) };
        let cluster = self.base.cluster;
        let host = &self.base.hosts.all[at];
        let Some(node) = host.node else { return Ok(()) };
        self.state(at);
        let Some(state) = self.on_hosts.get_mut(&at) else { return Ok(()) };
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

    fn add_to_host(&mut self, at: usize, queued: Queued<'b>) {
        let shape = self.shapes[queued.shape];
        let request = self.requests[shape.request].clone();
        let state = self.state(at);
        for (room, asked) in state.room.iter_mut().zip(request.as_slice()) {
            *room = room.saturating_sub(*asked);
        }
        state.pods.push(Arc::clone(queued.pod));
        let kind = &self.kinds[shape.kind];
        if let Some(state) = self.on_hosts.get_mut(&at) {
            state.ports.extend_from_slice(&kind.ports);
            if let (Some(attached), Some(more)) = (&mut state.attached, queued.attached) {
                attached.extend(&self.attached[more]);
            }
        }
        let class = &self.base.hosts.classes[self.base.hosts.all[at].class];
        let groups = kind.membership.counted_in.iter().chain(&kind.announces).copied();
        self.counts.record_on_host(groups, at, |group| group.accepts_host(&class.labels, &class.taints));
        self.placed += 1;
    }
}

impl Base<'_> {
    /// Hosts that have room for one pod of a shape, and the labels and taints that it asks for. O(hosts), once.
    fn hosts_for(&self, known: usize, level: usize) -> &Bits {
        let KnownShape { shape, hosts } = &self.known.shapes[known];
        hosts[level].get_or_init(|| {
            let (level, request) = (&self.known.kinds[shape.kind].levels[level], &self.known.requests[shape.request]);
            let resources = self.index.len();
            let mut classes: Vec<Option<bool>> = vec![None; self.hosts.classes.len()];
            let mut open = Bits::none(self.hosts.usable);
            for (at, room) in self.hosts.rooms.chunks_exact(resources.max(1)).take(self.hosts.usable).enumerate() {
                let class = self.hosts.all[at].class;
                let own = &self.hosts.classes[class];
                let mut holds = || !terms_that_hold(own, level, &self.sets).is_empty();
                if fits(request.as_slice(), room) && *classes[class].get_or_insert_with(&mut holds) {
                    open.insert(at);
                }
            }
            open
        })
    }
}

/// The terms that hold on all hosts of a class, but for the names of hosts.
fn terms_that_hold(class: &HostClass, level: &Level, sets: &Sets<'_>) -> Vec<usize> {
    if tolerates(&class.taints, &level.tolerations).is_err() {
        return Vec::new();
    }
    let holds = |at: &usize| meets(&class.labels, &without_host_name(sets.get(level.terms[*at].all))).is_ok();
    (0..level.terms.len()).filter(holds).collect()
}

fn without_host_name(asked: &Requirements) -> std::borrow::Cow<'_, Requirements> {
    if asked.get(label::HOSTNAME).is_none() {
        return std::borrow::Cow::Borrowed(asked);
    }
    let mut rest = Requirements::new();
    asked.iter().filter(|own| &**own.key() != label::HOSTNAME).for_each(|own| rest.narrow(own.clone()));
    std::borrow::Cow::Owned(rest)
}
