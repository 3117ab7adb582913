use std::time::{Duration, Instant};

use super::*;

/// One line per result: where it begins and what it is, or the error.
fn outline(bytes: &[u8]) -> Vec<String> {
    read("f.yaml", bytes)
        .into_iter()
        .map(|result| match result {
            Ok(document) => format!("{} {}", document.line, Value::Object(document.object)),
            Err(error) => error.to_string(),
        })
        .collect()
}

#[test]
fn one_bad_document_does_not_hide_the_others() {
    let text = "kind: A\n---\nkind: [\n---\n# c\nkind: C\n";
    let found = outline(text.as_bytes());
    assert_eq!(found.len(), 3, "{found:?}");
    assert_eq!(found[0], r#"1 {"kind":"A"}"#);
    assert!(found[1].starts_with("f.yaml:3:"), "{}", found[1]);
    assert_eq!(found[2], r#"6 {"kind":"C"}"#);
}

#[test]
fn the_texts_of_a_stream_are_the_stream() {
    for text in [
        "# licence\n---\n# more\n\n---\na: 1\n---\n---\nb: 2 # x\n...\n# between\n---\nc: 3\n# end\n---\n",
        "%YAML 1.1\n---\na: 1\n",
        "{\"a\": 1}\n{\"b\": 2} {\"c\": 3}\n",
        "a: 1\r\n---\r\nb: 2",
        "--- {a: 1}\n--- # note\nb: 1\n",
        "\u{feff}a: 1\n",
    ] {
        let documents: Vec<_> = read("f", text.as_bytes()).into_iter().map(Result::unwrap).collect();
        let together: String = documents.iter().map(|document| document.text.as_str()).collect();
        assert_eq!(together, text);
    }
}

#[test]
fn several_json_values_are_several_documents() {
    let found = outline(b"{\"a\": 1}\n\n{\"b\":\n 2} {\"c\": 3}\n");
    assert_eq!(found, [r#"1 {"a":1}"#, r#"3 {"b":2}"#, r#"4 {"c":3}"#]);
}

#[test]
fn an_error_names_file_line_and_column() {
    for (text, expected) in [
        ("a: 1\nb:\n  c: 1\n  c: 2\n", r#"f.yaml:4:3: the key "c" is given twice"#),
        ("# x\n- a\n", "f.yaml:2:1: expected an object with apiVersion and kind, found a list"),
        ("just text\n", "f.yaml:1:1: expected an object with apiVersion and kind, found a string"),
        ("a: \"x", "f.yaml:1:4: the document ends too early: unclosed quote"),
        ("a: \"x\n", "f.yaml:2:1: the document ends too early"),
        ("{\"a\": 1,\n \"a\": 2}", r#"f.yaml:2:2: the key "a" is given twice"#),
        ("a:\n\tb: 1\n", "f.yaml:2:2: a tab cannot indent YAML"),
    ] {
        let found = outline(text.as_bytes());
        assert!(found[0].starts_with(expected), "{text:?}: {found:?}");
    }
}

#[test]
fn text_that_is_not_utf8_is_reported_with_its_offset() {
    assert_eq!(outline(b"a: 1\nb: \xff\n"), ["f.yaml:2:4: not UTF-8 text: byte 0xff at offset 8"]);
}

#[test]
fn a_file_of_nothing_but_comments_holds_no_document() {
    assert!(outline(b"").is_empty());
    assert!(outline(b"# a\n---\n\n---\n# b\n...\n").is_empty());
}

#[test]
fn more_than_a_thousand_documents_are_read() {
    assert_eq!(read("f", "a: 1\n---\n".repeat(3000).as_bytes()).len(), 3000);
}

#[test]
fn a_list_becomes_its_items_each_with_its_line() {
    let text = "apiVersion: v1\nkind: List\nitems:\n- kind: A\n- kind: List\n  items:\n  - {kind: B}\n- 7\n";
    let document = read("f", text.as_bytes()).remove(0).unwrap();
    let items: Vec<_> = document.flatten().into_iter().map(|item| (item.line, item.kind().to_owned())).collect();
    assert_eq!(items, [(4, "A".to_owned()), (5, "B".to_owned())]);
}

#[test]
fn items_of_a_typed_list_get_their_kind_from_it() {
    let text = "apiVersion: karpenter.sh/v1\nkind: NodePoolList\nitems: [{metadata: {name: a}}]\n";
    let items = read("f", text.as_bytes()).remove(0).unwrap().flatten();
    assert_eq!((items[0].api_version(), items[0].kind(), items[0].name()), ("karpenter.sh/v1", "NodePool", "a"));
}

/// Every shape that makes a careless reader slow, `size` bytes of each.
fn evil_shapes(size: usize) -> Vec<String> {
    let fill = |unit: &str| unit.repeat(size / unit.len());
    let numbered = |line: fn(usize) -> String| {
        let mut text = String::with_capacity(size);
        let mut index = 0;
        while text.len() < size {
            text.push_str(&line(index));
            index += 1;
        }
        text
    };
    vec![
        fill("a"),
        fill("["),
        fill("{"),
        fill("{\"a\":"),
        fill("- "),
        fill("a: "),
        fill("a: \n"),
        fill("\""),
        fill("'"),
        fill("&a "),
        fill("*a "),
        fill("? "),
        fill("---\n"),
        fill("---\n[\n"),
        fill("{}"),
        fill("\t"),
        fill("#\n"),
        fill("\n"),
        format!("a: {}", fill("x ")),
        format!("a: \"{}", fill("\\n")),
        format!("a: [{}", fill("x, ")),
        format!("a: [{}", fill("[], ")),
        format!("a: |\n{}", fill("  x\n")),
        format!("a: &x y\nb: [{}", fill("*x, ")),
        numbered(|index| format!("k{index}: &a{index} v\n")),
        numbered(|index| format!("k{index}: &a v\n")),
    ]
}

fn time_to_read(text: &str) -> Duration {
    let start = Instant::now();
    read("f", text.as_bytes());
    start.elapsed()
}

/// Eight times the text may take 32 times as long: a quadratic reader takes 64 times. The half second on top is for
/// shapes that are answered at once, where only the machine's moods are measured.
#[test]
fn the_time_to_read_grows_with_the_text_and_not_with_its_square() {
    const SIZE: usize = 64 << 10;
    for (small, large) in evil_shapes(SIZE).iter().zip(evil_shapes(8 * SIZE)) {
        let bound = 32 * time_to_read(small) + Duration::from_millis(500);
        let took = time_to_read(&large);
        assert!(took < bound, "{:?}: {took:?}, more than {bound:?}", &small[..20]);
    }
}

/// A quadratic reader would need hours; the bound is loose because test machines are busy.
#[test]
#[cfg_attr(debug_assertions, ignore = "half a minute unless optimised: cargo test --release -p kerf-api")]
fn ten_megabytes_of_anything_are_answered_soon() {
    for shape in evil_shapes(10 << 20) {
        let took = time_to_read(&shape);
        assert!(took < Duration::from_secs(20), "{:?} took {took:?}", &shape[..20]);
    }
}

#[test]
fn a_file_beyond_the_limit_is_refused() {
    let found = outline(&vec![b'a'; MAX_BYTES + 1]);
    assert!(found[0].contains("more than"), "{found:?}");
}
