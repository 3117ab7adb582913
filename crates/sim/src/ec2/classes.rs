//! The controller of EC2NodeClasses: what their selectors find, whether they are ready, and their hashes.

use jiff::Timestamp;
use kerf_api::Provider;
use kerf_api::change::{Reader, WatchedKind};
use kerf_api::ec2_node_class::Ec2NodeClassSpec;
use kerf_cloud::fingerprint::fingerprint;
use kerf_cloud_aws::{Ec2Class, stamps};
use kerf_model::change::Change;
use kerf_model::cluster::{NodeClaim, ObjectName, Texts};
use serde_json::{Map, Value, json};

use super::{Account, CA_BUNDLE};
use crate::store::{ApiError, Kind, Object, Part, Patch, Store};
use crate::world::{Actor, Condition, Truth, Watch, change_status, set_condition};

pub struct Classes {
    account: Account,
    classes: Watch,
    claims: Watch,
    reader: Reader,
}

impl Classes {
    pub fn new(account: Account) -> Self {
        Self {
            account,
            classes: Watch::new(Kind::Ec2NodeClass),
            claims: Watch::new(Kind::NodeClaim),
            reader: Reader::new(Some(Provider::Aws)),
        }
    }

    fn resolve(&self, class: &Object, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        // What does not decode is not resolved, and stays as it was.
        let spec = class.at(&["spec"]).map(Ec2NodeClassSpec::deserialize);
        let Some(Ok(spec)) = spec else { return Ok(()) };
        let images = self.account.images(&spec);
        let subnets = self.account.subnets(&spec.subnet_selector_terms);
        let groups = self.account.groups(&spec.security_group_selector_terms);
        let profile = match (&spec.instance_profile, &spec.role) {
            (Some(profile), _) => profile.clone(),
            (None, role) => {
                let role = role.as_deref().unwrap_or_default();
                format!("demo_{:016x}", fingerprint(&format!("{}/{role}", class.name.name)))
            }
        };
        let parts = [
            ("AMIsReady", images.is_empty(), "AMINotFound", "no image that the terms select"),
            ("SubnetsReady", subnets.is_empty(), "SubnetsNotFound", "no subnet that the terms select"),
            ("SecurityGroupsReady", groups.is_empty(), "SecurityGroupsNotFound", "no group that the terms select"),
            ("InstanceProfileReady", false, "", ""),
            ("ValidationSucceeded", false, "", ""),
        ];
        let found = json!({"amis": images, "subnets": subnets, "securityGroups": groups, "instanceProfile": profile});
        change_status(store, Kind::Ec2NodeClass, &class.name, |status| {
            for (name, value) in found.as_object().into_iter().flatten() {
                status[name] = value.clone();
            }
            let missing = parts.iter().find(|(_, is_missing, ..)| *is_missing);
            let (reason, message) = missing.map_or(("", ""), |(_, _, reason, message)| (*reason, *message));
            let ready = ("Ready", missing.is_some(), reason, message);
            for (type_, is_missing, reason, message) in parts.iter().chain([&ready]) {
                let (is_true, reason, message) = match is_missing {
                    true => (Truth::False, *reason, *message),
                    // The schema wants a message.
                    false => (Truth::True, *type_, "nothing is missing"),
                };
                set_condition(status, &Condition { type_, is_true, reason, message }, now);
            }
        })
    }

    fn stamp(&mut self, name: &ObjectName, store: &mut Store) -> Result<(), ApiError> {
        let claims: Vec<Object> = store.all(Kind::NodeClaim).cloned().collect();
        let claims: Vec<NodeClaim> = claims.iter().filter_map(|claim| self.read(claim)).collect();
        let class = store.get(Kind::Ec2NodeClass, name)?;
        // A class that cannot be hashed keeps its hash: nothing drifts by it.
        let Some(writes) =
            Ec2Class::read(class.body()).ok().and_then(|class| stamps::next(&class, CA_BUNDLE, &claims).ok())
        else {
            return Ok(());
        };
        for (claim, annotations) in &writes.claims {
            annotate(store, Kind::NodeClaim, &ObjectName::of_cluster(&**claim), annotations)?;
        }
        match &writes.class {
            Some(annotations) => annotate(store, Kind::Ec2NodeClass, name, annotations),
            None => Ok(()),
        }
    }

    fn read(&mut self, claim: &Object) -> Option<NodeClaim> {
        let seen = self.reader.seen_json(WatchedKind::NodeClaim, claim.body()).ok()?;
        let Change::NodeClaim(_, Some(claim)) = seen.change else { return None };
        Some((*claim).clone())
    }
}

fn annotate(store: &mut Store, kind: Kind, name: &ObjectName, annotations: &Texts) -> Result<(), ApiError> {
    let all: Map<_, _> = annotations.iter().map(|(key, value)| (key.to_string(), Value::from(&**value))).collect();
    let patch = json!({"metadata": {"annotations": all}});
    store.patch(kind, name, Part::Main, &Patch::Merge(patch)).map(drop)
}

impl Actor for Classes {
    fn name(&self) -> &'static str {
        "ec2nodeclasses"
    }

    fn step(&mut self, store: &mut Store, now: Timestamp) -> Result<(), ApiError> {
        // Both are always taken in.
        let has_news = [self.classes.has_news(store), self.claims.has_news(store)];
        if has_news == [false, false] {
            return Ok(());
        }
        let _seen = (self.classes.news(store), self.claims.news(store));
        let classes: Vec<Object> = store.all(Kind::Ec2NodeClass).cloned().collect();
        for class in classes.iter().filter(|class| !class.is_deleting()) {
            self.resolve(class, store, now)?;
            self.stamp(&class.name, store)?;
        }
        Ok(())
    }

    fn next_due(&self) -> Option<Timestamp> {
        None
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use kerf_api::admission::Admission;
    use kerf_cloud::Catalogue;

    use super::*;
    use crate::world::{Pace, World};

    fn world(image: &str, tier: &str) -> (World, ObjectName) {
        let admission = Arc::new(Admission::new(&kerf_api::crds(None)).unwrap());
        let now = "2026-01-05T09:00:00Z".parse().unwrap();
        let mut world = World::new(admission, 1, Pace::default(), now);
        world.add(Classes::new(Account::in_zones_of(Catalogue::ec2_like().types())));
        let class = json!({"metadata": {"name": "default"}, "spec": {
            "role": "nodes", "amiFamily": "AL2", "amiSelectorTerms": [{"name": image}],
            "subnetSelectorTerms": [{"tags": {"tier": tier}}], "securityGroupSelectorTerms": [{"name": "nodes"}],
        }});
        world.store_mut().create(Kind::Ec2NodeClass, class, now).unwrap();
        world.step(now).unwrap();
        (world, ObjectName::of_cluster("default"))
    }

    #[test]
    fn a_class_says_what_it_has_found_and_carries_its_hash() {
        let (world, name) = world("*-1.27-*", "private");
        let class = world.store().get(Kind::Ec2NodeClass, &name).unwrap();
        assert!(class.is_condition_true("Ready"));
        assert_eq!(class.at(&["status", "amis"]).unwrap()[0]["id"], "ami-al2k127amd64");
        let subnets = class.list(&["status", "subnets"]);
        let ids: Vec<_> = subnets.iter().map(|subnet| (&subnet["id"], &subnet["zone"])).collect();
        assert_eq!(ids[0], (&json!("subnet-a1"), &json!("us-east-1a")));
        assert_eq!((ids.len(), &class.at(&["status", "securityGroups"]).unwrap()[0]["id"]), (3, &json!("sg-nodes")));
        let read = Ec2Class::read(class.body()).unwrap();
        assert_eq!(read.stamp.hash, Some(read.seal(CA_BUNDLE).unwrap().hash.to_string()));
    }

    #[test]
    fn a_class_that_finds_nothing_is_not_ready_and_says_what_is_missing() {
        for (image, tier, type_, reason) in [
            ("*-1.99-*", "private", "AMIsReady", "AMINotFound"),
            ("*-1.27-*", "nowhere", "SubnetsReady", "SubnetsNotFound"),
        ] {
            let (world, name) = world(image, tier);
            let class = world.store().get(Kind::Ec2NodeClass, &name).unwrap();
            let conditions = class.list(&["status", "conditions"]);
            for type_ in [type_, "Ready"] {
                let found = conditions.iter().find(|condition| condition["type"] == type_).unwrap();
                assert_eq!((&found["status"], &found["reason"]), (&json!("False"), &json!(reason)), "{type_}");
            }
        }
    }
}
