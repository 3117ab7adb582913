//! What machines are made of, whether they would be made otherwise today, and what can be changed while they run.

use std::sync::Arc;

use jiff::Timestamp;
use kerf_cloud::choice::Choice;
use kerf_cloud::{InstanceTypes, Order};
use kerf_cloud_aws::{CannotTell, Ec2Class, InstanceFacts, Look, stamps};
use kerf_model::change::Input;
use kerf_model::cloud::{CloudDrift, LaunchError, Launched, UpdateAnswer};
use kerf_model::cluster::{NodeClaim, Texts};
use kerf_model::effect::Target;
use kerf_model::label;
use kerf_model::requirement::UndefinedKeys;

use super::Cloud;
use crate::autoscaler::image::{self, Wanted};
use crate::ec2::{self, CA_BUNDLE};

/// What a machine was made of, and has now.
pub(super) enum Made {
    Plain { tags: Option<Arc<str>> },
    Ec2(Box<InstanceFacts>),
}

impl Cloud {
    /// What can be launched with the class.
    pub(super) fn offered_by(
        &self,
        wanted: &Wanted,
        claim: &NodeClaim,
        types: InstanceTypes,
    ) -> Result<InstanceTypes, LaunchError> {
        match wanted {
            Wanted::Plain { .. } => Ok(types),
            Wanted::Ec2(class) => {
                let class = Order { claim, class: class.as_deref() }.usable_class()?;
                Ok(types.iter().map(|kind| ec2::launchable(kind, class, &self.rules)).collect())
            }
        }
    }

    /// Settles what the class decides of a machine.
    pub(super) fn make(
        &self,
        wanted: &Wanted,
        choice: &Choice<'_>,
        answer: &mut Launched,
    ) -> Result<Made, LaunchError> {
        let class = match wanted {
            Wanted::Plain { image, tags } => {
                answer.image_id.clone_from(image);
                return Ok(Made::Plain { tags: tags.clone() });
            }
            Wanted::Ec2(None) => return Ok(Made::Plain { tags: None }),
            Wanted::Ec2(Some(class)) => class,
        };
        let open = UndefinedKeys::OpenIfWellKnown(&self.rules);
        let image = class.image_for(&choice.instance_type.requirements, open);
        answer.image_id = image.map(|image| image.id.clone());
        let zone = choice.requirements.get(label::ZONE);
        let subnet = class.subnets.iter().find(|subnet| zone.is_some_and(|zone| zone.has(&subnet.zone)));
        if let Some(id) = subnet.and_then(|subnet| subnet.zone_id.clone()) {
            answer.labels.insert("topology.k8s.aws/zone-id".into(), id);
        }
        answer.annotations = stamps::of_launch(class, CA_BUNDLE).map_err(|error| LaunchError::Failed {
            reason: "NodeClassHash".into(),
            message: error.to_string().into(),
        })?;
        Ok(Made::Ec2(Box::new(InstanceFacts {
            image_id: answer.image_id.clone(),
            subnet_id: subnet.map(|subnet| subnet.id.clone()),
            security_groups: class.security_groups.clone(),
            reservation_id: None,
            is_fresh: true,
            tags: Some(class.tags()),
            detailed_monitoring: Some(class.detailed_monitoring()),
        })))
    }

    /// Whether the machine of a claim would be made otherwise today. `known` is the claim as who asks knows it.
    pub(in crate::autoscaler) fn check_drift(
        &mut self,
        claim: Target,
        known: Option<&NodeClaim>,
        wanted: &Wanted,
        now: Timestamp,
    ) {
        let drift = match wanted {
            Wanted::Plain { image, tags } => Ok(self.plain_drift(&claim, image.as_deref(), tags.as_deref())),
            Wanted::Ec2(class) => self.ec2_drift(&claim, known, class.as_deref()),
        };
        // What cannot be told is not answered, and asked again.
        if let Ok(drift) = drift {
            self.answer(Input::DriftFound { claim, drift }, now);
        }
    }

    fn ec2_drift(
        &self,
        target: &Target,
        claim: Option<&NodeClaim>,
        class: Option<&Ec2Class>,
    ) -> Result<Option<CloudDrift>, CannotTell> {
        let (Some(claim), Some(class)) = (claim, class) else { return Ok(None) };
        let machine = self.instances.values().find(|machine| machine.is_for(&target.uid));
        let instance = machine.and_then(|machine| match &machine.made {
            Made::Ec2(facts) => Some(&**facts),
            Made::Plain { .. } => None,
        });
        let name = claim.meta.labels.get(label::INSTANCE_TYPE);
        let instance_type = self.plenty.iter().find(|kind| Some(&kind.name) == name);
        let rules = &self.rules;
        kerf_cloud_aws::drift(Look { class, claim, instance, instance_type, placement_group: None, rules })
    }

    /// Made from another image than its class wants now, or with other tags.
    fn plain_drift(&self, claim: &Target, image: Option<&str>, tags: Option<&str>) -> Option<CloudDrift> {
        let machine = self.instances.values().find(|machine| machine.is_for(&claim.uid));
        let made_from = machine.and_then(|machine| machine.answer.image_id.as_deref());
        let drift = image.zip(made_from).filter(|(wanted, made_from)| wanted != made_from);
        let drift = drift.map(|(wanted, made_from)| CloudDrift {
            reason: "AMIDrift".into(),
            message: format!("image {made_from}, wanted {wanted}").into(),
            in_place: false,
        });
        let has = machine.map(|machine| match &machine.made {
            Made::Plain { tags } => tags.as_deref(),
            Made::Ec2(_) => None,
        });
        let tagged = has.filter(|has| *has != tags).map(|has| CloudDrift {
            reason: "NodeClassDrift".into(),
            message: format!("tags {:?}, wanted {:?}", has.unwrap_or_default(), tags.unwrap_or_default()).into(),
            in_place: true,
        });
        drift.or(tagged)
    }

    /// Gives the machine of a claim the tags (and the monitoring) that its class wants, as it runs.
    pub(in crate::autoscaler) fn update(&mut self, claim: Target, wanted: Wanted, now: Timestamp) {
        let machine = self.instances.values_mut().find(|machine| machine.is_for(&claim.uid));
        let made = machine.map(|machine| &mut machine.made);
        let tags = match &wanted {
            Wanted::Plain { tags, .. } => tags.as_deref().map_or(0, |tags| tags.split(',').count()),
            Wanted::Ec2(class) => class.as_ref().map_or(0, |class| class.tags().len()),
        };
        let failed = |message: &str| UpdateAnswer::Failed { message: message.into() };
        let answer = match (made, wanted) {
            (Some(_), _) if tags > image::MOST_TAGS => {
                let message = format!("{tags} tags, and a machine can have {}", image::MOST_TAGS).into();
                UpdateAnswer::Impossible { message }
            }
            (Some(Made::Plain { tags }), Wanted::Plain { tags: wanted, .. }) => {
                *tags = wanted;
                UpdateAnswer::Done { annotations: Texts::new() }
            }
            (Some(Made::Ec2(facts)), Wanted::Ec2(Some(class))) => {
                facts.tags = Some(class.tags());
                facts.detailed_monitoring = Some(class.detailed_monitoring());
                match stamps::of_update(&class, CA_BUNDLE) {
                    Ok(annotations) => UpdateAnswer::Done { annotations },
                    Err(error) => failed(&error.to_string()),
                }
            }
            (Some(Made::Plain { .. } | Made::Ec2(_)), Wanted::Plain { .. } | Wanted::Ec2(_)) => {
                failed("the node class is gone")
            }
            (None, _) => failed("there is no such instance"),
        };
        self.answer(Input::InstanceUpdated { claim, answer }, now);
    }
}
