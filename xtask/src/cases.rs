//! The page that says which test shows which case: every test that it names exists.

#[cfg(test)]
mod tests {
    use std::fs;

    use crate::places;

    /// Rows are `| case | `test` | [file](../../path) |`; those without a test say why.
    #[test]
    fn every_test_that_the_page_of_cases_names_exists() {
        let page = fs::read_to_string(places::root().join("docs/dev/cases.md")).expect("the page is there");
        let mut rows = 0;
        for row in page.lines().filter(|line| line.contains("](../../")) {
            let test = row.split('`').nth(1).unwrap_or_else(|| panic!("no test in {row}"));
            let file = row.split("](../../").nth(1).and_then(|rest| rest.split(')').next());
            let file = file.unwrap_or_else(|| panic!("no file in {row}"));
            let text = fs::read_to_string(places::root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(text.contains(&format!("fn {test}(")), "{test} is not in {file}");
            rows += 1;
        }
        assert!(rows > 200, "{rows} rows");
    }
}
