//! Figures as people and as machines read them.

/// Columns of one width, the first to the left and the others to the right.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let cell = |row: &Vec<String>, column: usize| row.get(column).map_or(0, |text| text.chars().count());
    let widths: Vec<_> =
        (0..columns).map(|column| rows.iter().map(|row| cell(row, column)).max().unwrap_or_default()).collect();
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
            0 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// `980 µs`, `12.3 ms`, `4.56 s`.
pub fn nanos(nanos: u64) -> String {
    let nanos = nanos as f64;
    match nanos {
        _ if nanos < 1e6 => format!("{:.0} µs", nanos / 1e3),
        _ if nanos < 1e9 => format!("{:.1} ms", nanos / 1e6),
        _ => format!("{:.2} s", nanos / 1e9),
    }
}

pub fn mebibytes(bytes: u64) -> String {
    format!("{:.0} MiB", bytes as f64 / f64::from(1 << 20))
}

/// `0.973`, `12.4`, `1234`: three digits that mean something.
pub fn ratio(ratio: Option<f64>) -> String {
    match ratio {
        None => "-".into(),
        Some(ratio) if ratio < 10.0 => format!("{ratio:.3}"),
        Some(ratio) if ratio < 100.0 => format!("{ratio:.1}"),
        Some(ratio) => format!("{ratio:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_the_unit_that_suits_them() {
        let shown = [nanos(980_000), nanos(12_340_000), nanos(4_560_000_000), mebibytes(3 << 20)];
        assert_eq!(shown, ["980 µs", "12.3 ms", "4.56 s", "3 MiB"]);
        let ratios = [None, Some(0.9731), Some(12.44), Some(1234.4)].map(ratio);
        assert_eq!(ratios, ["-", "0.973", "12.4", "1234"]);
    }

    #[test]
    fn columns_line_up_also_with_letters_that_are_no_ascii() {
        let rows = [vec!["a".into(), "1 µs".into()], vec!["long".into(), "10 ms".into()]];
        assert_eq!(table(&rows), "a      1 µs\nlong  10 ms\n");
    }
}
