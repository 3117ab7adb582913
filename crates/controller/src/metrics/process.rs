//! What the process itself uses.

use super::catalogue::{CPU, MEMORY};
use super::registry::Page;

/// Ticks of the kernel's accounting; the same on every Linux that runs containers.
const TICKS_PER_SECOND: f64 = 100.0;

/// Nothing where there is no `/proc`.
pub fn write(page: &mut Page) {
    if let Some(bytes) = resident_bytes() {
        page.gauge(&MEMORY, &[], bytes);
    }
    if let Some(seconds) = cpu_seconds() {
        page.gauge(&CPU, &[], seconds);
    }
}

fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0)
}

fn cpu_seconds() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name in parentheses, which may have spaces, user and system time are the 12th and 13th field.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace().skip(11);
    let ticks = [fields.next()?, fields.next()?].map(|field| field.parse::<f64>().ok());
    Some((ticks[0]? + ticks[1]?) / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_uses_something() {
        assert!(resident_bytes().unwrap() > 1e6);
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}
