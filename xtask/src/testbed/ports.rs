//! Picking free ports on loopback.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

use super::state::{Layout, Ports, Record, bed_names};

/// Below the range from which kernels take the ports of outgoing connections (32768 and up on Linux): there, a port that
/// was free when it was picked may be gone a moment later.
const RANGE: std::ops::Range<u16> = 20_000..32_000;

/// The caller holds the lock of `state::lock_ports` until the picked ports are saved.
pub fn pick(name: &str) -> Result<Ports> {
    let taken = ports_of_other_beds(name)?;
    // Beds begin their search at different places, so that a bed which is up again usually finds its old neighbourhood.
    let offset = name.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte))) % 1_000;
    let begin = RANGE.start + offset * 10;
    let mut free = (begin..RANGE.end).chain(RANGE.start..begin).filter(|port| !taken.contains(port) && is_free(*port));
    let mut next = || free.next().context("no free port between 20000 and 32000");
    Ok(Ports { etcd: next()?, etcd_peer: next()?, api_server: next()?, scheduler: next()?, kwok: next()? })
}

pub fn are_free(ports: &Ports) -> bool {
    ports.all().into_iter().all(is_free)
}

fn is_free(port: u16) -> bool {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
}

/// A bed that is down keeps its ports, so that it comes back under the same address.
fn ports_of_other_beds(name: &str) -> Result<BTreeSet<u16>> {
    let mut taken = BTreeSet::new();
    for other in bed_names()?.iter().filter(|other| *other != name) {
        // Another version of Kerf may have written a record that this one cannot read. If that bed runs, its ports are not
        // free anyway.
        if let Ok(Some(record)) = Record::load(&Layout::named(other)?) {
            taken.extend(record.ports.all());
        }
    }
    Ok(taken)
}
