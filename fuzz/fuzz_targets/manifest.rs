//! Any bytes are documents or errors; documents keep their text, survive print, and convert to what converts no more.
#![no_main]

use kerf_api::convert::{Options, convert};
use kerf_api::manifest::{Document, read};
use kerf_api::yaml::object_to_yaml;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let results = read("f", bytes);
    let documents: Vec<Document> = results.iter().filter_map(|result| result.as_ref().ok()).cloned().collect();
    if !documents.is_empty() && documents.len() == results.len() {
        let together: String = documents.iter().map(|document| document.text.as_str()).collect();
        assert_eq!(together.as_bytes(), bytes);
    }
    for document in documents.iter().cloned().flat_map(Document::flatten) {
        let printed = object_to_yaml(&document.object);
        let again = read("printed", printed.as_bytes());
        let [Ok(again)] = again.as_slice() else { panic!("{printed:?} reads as {again:?}") };
        assert_eq!(again.object, document.object);
    }
    let once = convert(documents, &Options::default()).to_yaml();
    let back: Option<Vec<Document>> = read("once", once.as_bytes()).into_iter().map(Result::ok).collect();
    if let Some(back) = back {
        assert_eq!(convert(back, &Options::default()).to_yaml(), once);
    }
});
