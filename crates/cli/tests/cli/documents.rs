//! Where manifests come from.

use super::harness::{class, kerf, pool, repository, scratch, write_files};

/// The names of what `kerf validate` saw, in its order.
fn seen(arguments: &str, stdin: &str, code: i32) -> Vec<String> {
    let report = kerf(&format!("validate -o json {arguments}")).stdin(stdin).exits(code).json();
    let objects = report["objects"].as_array().unwrap().iter();
    objects.map(|object| object["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn files_directories_and_standard_input_are_read_in_the_order_given() {
    let root = scratch("input-order");
    let (a, b, c, d) = (class("a"), class("b"), class("c"), class("d"));
    write_files(
        &root,
        &[
            ("dir/2.yaml", &b),
            (
                "dir/1.json",
                r#"{"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass", "metadata": {"name": "json"}}"#,
            ),
            ("dir/notes.txt", "not: [read"),
            ("dir/below/deep/3.yml", &c),
            ("one.yaml", &a),
            ("odd-name", &d),
        ],
    );
    let root = root.display();
    assert_eq!(seen(&format!("-f {root}/dir"), "", 0), ["json", "b"]);
    assert_eq!(seen(&format!("-R -f {root}/dir"), "", 0), ["json", "b", "c"]);
    assert_eq!(
        seen(&format!("-f {root}/one.yaml -f - -f {root}/dir"), &class("stdin"), 0),
        ["a", "stdin", "json", "b"]
    );
    // As a shell expands `-f *`.
    assert_eq!(seen(&format!("-f {root}/one.yaml {root}/odd-name"), "", 0), ["a", "d"]);
}

#[test]
fn a_directory_without_manifests_is_an_error_that_says_so() {
    let root = scratch("input-empty");
    write_files(&root, &[("below/a.yaml", &class("a")), ("readme.md", "")]);
    let run = kerf(&format!("validate -f {}", root.display())).exits(2);
    assert_eq!(
        run.stderr,
        format!("kerf: {} holds no .yaml, .yml or .json file; -R looks into directories below it\n", root.display())
    );
}

#[test]
fn good_documents_are_processed_next_to_bad_ones() {
    let input = format!("{}---\nkind: [\n---\n{}---\na: 1\na: 2\n---\n{}", class("a"), pool("b", ""), class("c"));
    assert_eq!(seen("-f -", &input, 2), ["a", "b", "c"]);

    let hash = kerf("hash -f -").stdin(&input).exits(2);
    assert!(hash.stdout.contains("NodePool  b"), "{}", hash.stdout);
    let errors: Vec<&str> = hash.stderr.lines().collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].starts_with("kerf: <stdin>:5:") && errors[1].starts_with("kerf: <stdin>:"), "{errors:?}");

    let convert = kerf("convert -f -").stdin(&input).exits(2);
    assert!(convert.stdout.contains("name: a") && convert.stdout.contains("name: c"), "{}", convert.stdout);
}

#[test]
fn good_files_are_processed_next_to_missing_ones() {
    let root = scratch("input-missing");
    write_files(&root, &[("a.yaml", &class("a"))]);
    let root = root.display();
    assert_eq!(seen(&format!("-f {root}/missing.yaml -f {root}/a.yaml"), "", 2), ["a"]);
}

#[test]
fn items_of_a_list_are_objects_with_their_own_lines() {
    let input =
        "apiVersion: v1\nkind: List\nitems:\n- apiVersion: karpenter.sh/v1\n  kind: NodePool\n  metadata: {name: x}\n";
    let run = kerf("validate -f -").stdin(input).exits(1);
    assert!(run.stdout.starts_with("<stdin>:4: NodePool/x: error: spec: "), "{}", run.stdout);
}

#[test]
fn the_examples_are_valid_without_a_warning() {
    let run = kerf("validate --strict -f examples/").current_dir(&repository()).exits(0);
    assert!(run.stdout.ends_with("checked, 0 errors, 0 warnings\n"), "{}", run.stdout);
    for provider in ["kwok", "aws"] {
        kerf(&format!("validate --strict -f examples/{provider}.yaml --provider {provider}"))
            .current_dir(&repository())
            .exits(0);
    }
}
