//! The same work for many items, on all cores. Results come in the order of the items, whoever was first.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// How long one item takes, about.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Effort {
    /// Some ten microseconds.
    LookUp,
    /// Some hundred microseconds, and many times that.
    WhatIf,
}

/// What-ifs are bound by memory; more threads than this bring nothing.
const MOST_THREADS: usize = 8;

pub(crate) fn in_parallel<T: Sync, R: Send>(items: &[T], each: Effort, work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let threads = thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    if items.len() < each.worth_threads() || threads == 1 {
        return items.iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let take = || {
        let indices = std::iter::repeat_with(|| next.fetch_add(1, Ordering::Relaxed));
        indices.map_while(|at| Some((at, work(items.get(at)?)))).collect::<Vec<_>>()
    };
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let helpers: Vec<_> = (1..threads).map(|_| scope.spawn(take)).collect();
        let mut done = take();
        for helper in helpers {
            // A panic in a helper is a panic here.
            done.extend(helper.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        done
    });
    done.sort_unstable_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

impl Effort {
    /// With fewer items, starting threads costs more than it brings.
    fn worth_threads(self) -> usize {
        match self {
            Self::LookUp => 500,
            Self::WhatIf => 16,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1_000).collect();
        assert_eq!(
            in_parallel(&items, Effort::LookUp, |item| item * 2),
            items.iter().map(|item| item * 2).collect::<Vec<_>>()
        );
    }
}
