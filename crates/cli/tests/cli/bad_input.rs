//! Input that is no manifest: every command says where and why, in one line, soon, and goes on living.

use std::fs;

use super::harness::{kerf, scratch};

const COMMANDS: [&str; 3] = ["validate", "convert", "hash"];

#[test]
fn bad_documents_are_reported_with_file_and_position() {
    let ten_megabytes = "a".repeat(10 << 20);
    let deep_list = "[".repeat(100_000);
    let deep_object = "{\"a\":".repeat(100_000);
    let deep_block = "- ".repeat(100_000);
    let deep_value = format!("a: {}", "[".repeat(100_000));
    let cases: &[(&[u8], &str)] = &[
        (b"kind: NodePool\nspec: {a: [1, 2", "2:11: the document ends too early: unclosed bracket"),
        (b"kind: \"Node", "1:7: the document ends too early: unclosed quote"),
        (b"{\"kind\": \"NodePool\", ", "1:1: the document ends too early: "),
        (ten_megabytes.as_bytes(), "1:1: expected an object with apiVersion and kind, found a string"),
        (b"- kind: NodePool\n", "1:1: expected an object with apiVersion and kind, found a list"),
        (b"# comment\n\n42\n", "3:1: expected an object with apiVersion and kind, found a number"),
        (b"hello\n", "1:1: expected an object with apiVersion and kind, found a string"),
        (b"kind: a\nspec:\n  x: 1\n  x: 2\n", "4:3: the key \"x\" is given twice"),
        (b"{\"kind\": 1, \"kind\": 2}", "1:13: the key \"kind\" is given twice"),
        (deep_list.as_bytes(), "1:129: nested more than 128 levels deep"),
        (deep_object.as_bytes(), "1:641: nested more than 128 levels deep"),
        (deep_block.as_bytes(), "1:1: expected an object with apiVersion and kind, found a list"),
        (deep_value.as_bytes(), "1:132: nested more than 128 levels deep"),
        (b"kind: a\nname: \xc3\x28\n", "2:7: not UTF-8 text: byte 0xc3 at offset 14"),
        (b"\xff\xfek\0i\0n\0d\0", "1:1: not UTF-8 text: byte 0xff at offset 0"),
        (b"kind: \0\n", "1:7: "),
        (b"\0\0\0\0", "1:1: "),
        (b"kind:\n\t- a\n", "2:2: a tab cannot indent YAML: use spaces"),
        (b"a: &x [*x]\n", "1:8: an alias stands inside of the value it repeats"),
        (b"a: *nobody\n", "1:4: "),
        (b"{? [1]: 2}\n", "1:4: a list cannot be a key"),
    ];
    let file = scratch("bad-documents").join("bad.yaml");
    for (content, expected) in cases {
        fs::write(&file, content).unwrap();
        // All commands read in the same way, so one of them meets every case; the others are seen below.
        let run = kerf(&format!("convert -f {}", file.display())).exits(2);
        let expected = format!("kerf: {}:{expected}", file.display());
        assert!(run.stderr.starts_with(&expected), "expected {expected}\nfound {}", shortened(&run.stderr));
        assert_eq!(run.stderr.lines().count(), 1, "{}", shortened(&run.stderr));
        assert!(run.stderr.len() < expected.len() + 200, "{}", shortened(&run.stderr));
    }
}

#[test]
fn every_command_reports_a_bad_document() {
    for command in COMMANDS {
        let run = kerf(&format!("{command} -f -")).stdin("kind: \"Node").exits(2);
        assert_eq!(run.stderr, "kerf: <stdin>:1:7: the document ends too early: unclosed quote\n", "{command}");
    }
}

/// Well-formed, but no object of ours: only `validate` has an opinion.
#[test]
fn wrong_kinds_are_findings() {
    for (content, expected) in [
        ("a: 1\n", "<stdin>:1: object: error: every object needs apiVersion and kind [unknown_kind]\n"),
        ("kind: NodePool\n", "<stdin>:1: NodePool: error: every object needs apiVersion and kind [unknown_kind]\n"),
        (
            "apiVersion: karpenter.sh/v1\nkind: NodePol\nmetadata: {name: x}\n",
            "<stdin>:1: NodePol/x: error: no resource of kind `NodePol` in version `karpenter.sh/v1` [unknown_kind]\n",
        ),
        (
            "apiVersion: karpenter.sh/v2\nkind: NodePool\nmetadata: {name: x}\n",
            "<stdin>:1: NodePool/x: error: no resource of kind `NodePool` in version `karpenter.sh/v2` [unknown_kind]\n",
        ),
        (
            "apiVersion: 1\nkind: []\n",
            "<stdin>:1: object: error: every object needs apiVersion and kind [unknown_kind]\n",
        ),
    ] {
        let run = kerf("validate -f -").stdin(content).exits(1);
        assert!(run.stdout.starts_with(expected), "{content:?}: {}", run.stdout);
        for command in ["convert -f -", "hash -f -"] {
            kerf(command).stdin(content).exits(0);
        }
    }
}

/// Most often the command before the pipe has failed; to call that valid would hide it.
#[test]
fn input_without_an_object_is_an_error() {
    for content in ["", "\n\n", "# nothing\n---\n---\n", "\u{feff}"] {
        for command in COMMANDS {
            let run = kerf(&format!("{command} -f -")).stdin(content).exits(2);
            assert_eq!((run.stdout.as_str(), run.stderr.as_str()), ("", "kerf: there is no object in the input\n"));
        }
    }
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let root = scratch("unreadable");
    fs::write(root.join("file.yaml"), "a: 1\n").unwrap();
    let closed = root.join("closed");
    fs::create_dir(&closed).unwrap();
    let root = root.display();
    let mut cases = vec![
        (format!("{root}/missing.yaml"), format!("kerf: cannot read {root}/missing.yaml: No such file or directory")),
        (format!("{root}/file.yaml/below"), format!("kerf: cannot read {root}/file.yaml/below: Not a directory")),
    ];
    close(&closed);
    // To root every directory is open.
    if fs::read_dir(&closed).is_err() {
        cases.push((format!("{root}/closed"), format!("kerf: cannot list {root}/closed: Permission denied")));
    }
    for (path, expected) in cases {
        for command in COMMANDS {
            let run = kerf(&format!("{command} -f {path}")).exits(2);
            assert!(run.stderr.starts_with(&expected), "{}", run.stderr);
            assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        }
    }
}

#[cfg(unix)]
fn close(directory: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o000)).unwrap();
}

#[cfg(not(unix))]
fn close(_: &std::path::Path) {}

#[cfg(target_os = "linux")]
#[test]
fn input_without_end_is_refused() {
    let run = kerf("validate -f /dev/zero").exits(2);
    assert!(run.stderr.starts_with("kerf: /dev/zero:1:1: the file has "), "{}", run.stderr);
}

fn shortened(text: &str) -> String {
    text.chars().take(500).collect()
}
