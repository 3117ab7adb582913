//! Golden conversions: `tests/convert/NAME.input.yaml` gives `NAME.expected.yaml` and `NAME.notes.txt`.
//!
//! A first line `# options: …` in the input names options of `kerf convert`. `UPDATE_GOLDEN=1` writes what was found:
//! read the difference before you commit it.

use std::fs;
use std::path::Path;

use kerf_api::convert::{Options, convert};
use kerf_api::manifest::{Document, read};

fn documents(text: &str) -> Vec<Document> {
    read("input.yaml", text.as_bytes()).into_iter().map(Result::unwrap).collect()
}

fn options(input: &str) -> Options {
    let mut options = Options::default();
    let line = input.lines().next().and_then(|line| line.strip_prefix("# options:")).unwrap_or_default();
    for word in line.split_whitespace() {
        match word.split_once('=').unwrap_or((word, "")) {
            ("--skip-default-requirements", _) => options.skip_default_requirements = true,
            ("--freeze-drift", _) => options.freeze_drift = true,
            ("--rewrite-workloads", _) => options.rewrite_workloads = true,
            ("--role", role) => options.role = Some(role.to_owned()),
            (other, _) => assert_eq!(other, "", "unknown option"),
        }
    }
    options
}

#[test]
fn every_example_converts_as_expected() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/convert");
    let mut names: Vec<String> = fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().to_str()?.strip_suffix(".input.yaml").map(str::to_owned))
        .collect();
    names.sort();
    assert!(names.len() >= 10, "the examples are missing: {names:?}");

    let mut differences = Vec::new();
    for name in names {
        let input = fs::read_to_string(folder.join(format!("{name}.input.yaml"))).unwrap();
        let options = options(&input);
        let output = convert(documents(&input), &options);
        let yaml = output.to_yaml();
        let notes: String = output.notes.iter().map(|note| format!("{note} [{}]\n", note.finding.id())).collect();

        for (file, found) in [(format!("{name}.expected.yaml"), &yaml), (format!("{name}.notes.txt"), &notes)] {
            let path = folder.join(&file);
            if std::env::var_os("UPDATE_GOLDEN").is_some() {
                fs::write(&path, found).unwrap();
            } else if fs::read_to_string(&path).unwrap_or_default() != *found {
                differences.push(format!("{file}: found\n{found}"));
            }
        }
        let again = convert(documents(&yaml), &options).to_yaml();
        assert_eq!(again, yaml, "{name}: converting twice differs from converting once");
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
