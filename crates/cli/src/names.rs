//! Names that are not there, and those that may have been meant.

use anyhow::anyhow;

/// More would be a list to search, and not a hint.
const MOST_SHOWN: usize = 3;
/// So many letters may be wrong.
const MOST_EDITS: usize = 2;

/// That there is none of this name, with names that are nearly the same, or the same in another namespace.
pub fn not_found(kind: &str, name: &str, known: impl IntoIterator<Item = String>) -> anyhow::Error {
    let wanted = bare(name);
    let near = known.into_iter().filter_map(|other| Some((edits(wanted, bare(&other))?, other)));
    let mut near: Vec<(usize, String)> = near.collect();
    near.sort();
    let near: Vec<String> = near.into_iter().take(MOST_SHOWN).map(|(_, other)| other).collect();
    if near.is_empty() {
        return anyhow!("there is no {kind} {name}");
    }
    anyhow!("there is no {kind} {name}; is it {}?", near.join(" or "))
}

/// Without its namespace.
fn bare(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// How many letters are inserted, left out or exchanged, if they are few. A part of a name counts as one more than that.
fn edits(wanted: &str, other: &str) -> Option<usize> {
    let (wanted, other) = (wanted.as_bytes(), other.as_bytes());
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (at, letter) in wanted.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], at + 1);
        for (column, theirs) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != theirs);
            diagonal = row[column + 1];
            row[column + 1] = exchanged.min(diagonal + 1).min(row[column] + 1);
        }
    }
    let edits = row[other.len()];
    // Of a name of three letters, two wrong ones leave nothing.
    let is_near = edits <= MOST_EDITS && edits * 2 <= wanted.len();
    let is_part = !wanted.is_empty() && other.windows(wanted.len()).any(|part| part == wanted);
    if is_near || edits == 0 { Some(edits) } else { is_part.then_some(MOST_EDITS + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_nearly_right_is_told() {
        let told =
            |name: &str| not_found("pod", name, ["shop/web-1", "blog/web-1", "shop/db"].map(String::from)).to_string();
        assert_eq!(told("default/web-1"), "there is no pod default/web-1; is it blog/web-1 or shop/web-1?");
        assert_eq!(told("shop/wbe-1"), "there is no pod shop/wbe-1; is it blog/web-1 or shop/web-1?");
        assert_eq!(told("shop/web"), "there is no pod shop/web; is it blog/web-1 or shop/web-1?");
        assert_eq!(told("shop/api"), "there is no pod shop/api");
        assert_eq!(told(""), "there is no pod ");
    }
}
