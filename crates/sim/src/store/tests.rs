use kerf_api::admission::Admission;

use super::*;

fn store() -> (Store, Timestamp) {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    (Store::new(Arc::new(Admission::new(&[]).unwrap()), 1, now), now)
}

fn seen(store: &Store, after: u64) -> Vec<String> {
    let events = store.events_after(Kind::ConfigMap, after).unwrap();
    events.iter().map(|event| format!("{} {}", event.change.label(), event.object.name.name)).collect()
}

fn map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

#[test]
fn a_watch_sees_every_change_of_its_kind_in_order() {
    let (mut store, now) = store();
    let start = store.version();
    let name = ObjectName::new("default", "a");
    store.create(Kind::ConfigMap, map("a"), now).unwrap();
    store.create(Kind::Service, map("other"), now).unwrap();
    let middle = store.version();
    store.patch(Kind::ConfigMap, &name, Part::Main, &Patch::Merge(json!({"data": {"x": "1"}}))).unwrap();
    store.patch(Kind::ConfigMap, &name, Part::Main, &Patch::Merge(json!({"data": {"x": "1"}}))).unwrap();
    store.delete(Kind::ConfigMap, &name, &DeleteOptions::default(), now).unwrap();
    assert_eq!(seen(&store, start), ["ADDED a", "MODIFIED a", "DELETED a"]);
    assert_eq!(seen(&store, middle), ["MODIFIED a", "DELETED a"]);
    assert!(seen(&store, store.version()).is_empty());
    let versions: Vec<_> = store.events_after(Kind::ConfigMap, 0).unwrap().iter().map(|event| event.version).collect();
    assert!(versions.is_sorted());
}

#[test]
fn taking_the_last_finalizer_away_is_seen_as_one_deletion() {
    let (mut store, now) = store();
    let name = ObjectName::new("default", "a");
    store.create(Kind::ConfigMap, json!({"metadata": {"name": "a", "finalizers": ["x/y"]}}), now).unwrap();
    store.delete(Kind::ConfigMap, &name, &DeleteOptions::default(), now).unwrap();
    let before = store.version();
    store.patch(Kind::ConfigMap, &name, Part::Main, &Patch::Merge(json!({"metadata": {"finalizers": null}}))).unwrap();
    assert_eq!(seen(&store, before), ["DELETED a"]);
}

#[test]
fn a_watch_from_before_the_log_begins_is_told_to_list_again() {
    let (mut store, now) = store();
    let start = store.version();
    store.create(Kind::ConfigMap, map("a"), now).unwrap();
    let newest = store.version();
    store.compact();
    let gone = store.events_after(Kind::ConfigMap, start).unwrap_err();
    assert_eq!(gone, Gone { wanted: start, oldest: newest });
    assert_eq!((ApiError::from(gone).code(), ApiError::from(gone).reason()), (410, "Expired"));
    assert!(store.events_after(Kind::ConfigMap, newest).unwrap().is_empty());
}

#[test]
fn the_log_is_bounded() {
    let (mut store, now) = store();
    store.create(Kind::ConfigMap, map("a"), now).unwrap();
    let (start, name) = (store.version(), ObjectName::new("default", "a"));
    for count in 0..50_000 {
        let patch = Patch::Merge(json!({"data": {"count": count.to_string()}}));
        store.patch(Kind::ConfigMap, &name, Part::Main, &patch).unwrap();
    }
    assert!(store.events_after(Kind::ConfigMap, start).is_err());
    assert_eq!(store.events_after(Kind::ConfigMap, store.version() - 20_000).unwrap().len(), 20_000);
}

#[test]
fn a_shortened_grace_counts_from_the_first_request() {
    let (mut store, now) = store();
    let name = ObjectName::new("default", "p");
    let spec = json!({"terminationGracePeriodSeconds": 60, "containers": [{"name": "c", "image": "i"}]});
    store.create(Kind::Pod, json!({"metadata": {"name": "p"}, "spec": spec}), now).unwrap();
    store.bind(&name, "a", now).unwrap();
    store.delete(Kind::Pod, &name, &DeleteOptions::default(), now).unwrap();
    let later = now + jiff::SignedDuration::from_secs(5);
    store.delete(Kind::Pod, &name, &DeleteOptions::with_grace(20), later).unwrap();
    let pod = store.get(Kind::Pod, &name).unwrap();
    assert_eq!(pod.text(&["metadata", "deletionTimestamp"]), Some("2026-01-01T00:00:20Z"));
}

#[test]
fn what_several_stores_make_of_one_seed_is_the_same() {
    let make = || {
        let (mut store, now) = store();
        store.create(Kind::ConfigMap, json!({"metadata": {"generateName": "a-"}}), now).unwrap().body().to_string()
    };
    assert_eq!(make(), make());
}

#[test]
fn what_was_there_at_a_version_can_be_seen_again() {
    let (mut store, now) = store();
    let name = ObjectName::new("default", "a");
    let names = |store: &Store, version| -> Vec<String> {
        let objects = store.as_of(Kind::ConfigMap, version).unwrap();
        objects.iter().map(|it| format!("{} {:?}", it.name.name, it.text(&["data", "x"]))).collect()
    };
    let empty = store.version();
    store.create(Kind::ConfigMap, map("a"), now).unwrap();
    let first = store.version();
    store.patch(Kind::ConfigMap, &name, Part::Main, &Patch::Merge(json!({"data": {"x": "1"}}))).unwrap();
    store.create(Kind::ConfigMap, map("b"), now).unwrap();
    let both = store.version();
    store.delete(Kind::ConfigMap, &name, &DeleteOptions::default(), now).unwrap();
    assert!(names(&store, empty).is_empty());
    assert_eq!(names(&store, first), ["a None"]);
    assert_eq!(names(&store, both), ["a Some(\"1\")", "b None"]);
    assert_eq!(names(&store, store.version()), ["b None"]);
    store.compact();
    assert!(store.as_of(Kind::ConfigMap, first).is_err());
}
