//! Every rule whose breach `kerf validate` and `kerf convert` report: its stable id, what it means, what to do.
//!
//! The reference page is made from [`RuleId::ALL`]. Reasons elsewhere (rejections, violations, advice, conversion
//! findings) name their rule by an exhaustive match, so none can be printed that is not explained here.

use std::fmt;

/// Who reports a breach, and how bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// The API server would reject the object.
    Rejection,
    /// The API server accepts the object, and something about it is not as it seems.
    Warning,
    /// A conversion that failed, or whose result needs a hand before it works.
    ConversionError,
    /// A conversion whose result says something else, or less, than the original.
    ConversionWarning,
}

macro_rules! rule_book {
    ($($source:ident { $($rule:ident $id:literal: $meaning:literal $remedy:literal;)* })*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum RuleId {
            $($($rule,)*)*
        }

        impl RuleId {
            pub const ALL: &[Self] = &[$($(Self::$rule,)*)*];

            /// Stable, for scripts.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($(Self::$rule => $id,)*)*
                }
            }

            pub fn source(self) -> Source {
                match self {
                    $($(Self::$rule => Source::$source,)*)*
                }
            }

            pub fn meaning(self) -> &'static str {
                match self {
                    $($(Self::$rule => $meaning,)*)*
                }
            }

            pub fn remedy(self) -> &'static str {
                match self {
                    $($(Self::$rule => $remedy,)*)*
                }
            }
        }
    };
}

impl fmt::Display for RuleId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

rule_book! {
    Rejection {
        UnknownKind "unknown_kind": "No definition describes this apiVersion and kind, or they are missing." "Correct them; with `--provider`, check that the kind belongs to it.";
        LegacyKind "legacy_kind": "The kind is of an API version that is not served any more." "`kerf convert` rewrites it.";
        Metadata "metadata": "Name, labels, annotations, owner references or finalizers break Kubernetes' rules." "The message names the rule.";
        Required "required": "A field that must be there is missing." "Add it.";
        Type "type": "A value has the wrong type, such as text where a list is expected." "Change it; quote text that looks like a number or boolean.";
        Enum "enum": "A value is none of those that are allowed." "Use one of those that the message lists.";
        Pattern "pattern": "A text does not have the form that it needs." "The message has the regular expression.";
        MinLength "min_length": "A text is too short." "The message has the limit.";
        MaxLength "max_length": "A text is too long." "The message has the limit.";
        MinItems "min_items": "A list has too few items." "The message has the limit.";
        MaxItems "max_items": "A list has too many items." "The message has the limit.";
        MinProperties "min_properties": "A map has too few entries." "The message has the limit.";
        MaxProperties "max_properties": "A map has too many entries." "The message has the limit.";
        Minimum "minimum": "A number is too small." "The message has the limit.";
        Maximum "maximum": "A number is too large." "The message has the limit.";
        Range "range": "A number does not fit the field's integer type." "Use a smaller one.";
        Format "format": "A text is not of its format, such as a time stamp." "Write it as RFC 3339 asks: `2026-01-31T12:00:00Z`.";
        Alternatives "alternatives": "A value fits none of the alternatives, or more than one." "Use the type and form that the [API reference](api.md) gives for the field.";
        Duplicate "duplicate": "Two items of a list are equal, or have the same key." "Remove one.";
        Cel "cel": "A rule between several fields is broken." "The message states the rule.";
    }
    Warning {
        UnknownField "unknown_field": "The field does not exist in v1. The API server drops it silently; `kerf convert` leaves it out." "Correct its name or its indentation, or remove it.";
        Undecodable "undecodable": "The object passes its schema but cannot be decoded, so the controller ignores it." "The message names the place.";
        Duration "duration": "Not a duration, or longer than 292 years." "Write `90s`, `1h30m` or, where it is allowed, `Never`.";
        Quantity "quantity": "Not a quantity, or one too large to count." "Write `500m`, `4`, `16Gi`.";
        Price "price": "Not a price, or one too large to count." "Write `0.25`, `+5`, `-10%`.";
        NotExtended "not_extended": "An overlay changes cpu, memory, ephemeral-storage or pods." "Remove them: overlays add extended resources only.";
        LabelKey "label_key": "Not a label key, so no node can have it." "A name of at most 63 characters, after a DNS prefix and a slash if there is one.";
        LabelValue "label_value": "Not a label value, so no node can have it." "At most 63 letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.";
        RestrictedLabel "restricted_label": "The label is set by Kubernetes, the cloud or the controller." "Use a label of a domain of your own.";
        PoolLabel "pool_label": "`karpenter.sh/nodepool` is set on every node by the controller." "Remove it.";
        Operator "operator": "The operator is unknown." "One of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte.";
        Requirement "requirement": "Operator and values do not go together." "In needs values, a comparison needs one integer.";
        MinValues "min_values": "`minValues` asks for more different values than the requirement lists." "Lower it, or list more values.";
        NoKnownValue "no_known_value": "No value of the requirement exists, so no node can meet it." "Use one of those that the message lists.";
        UnknownValues "unknown_values": "Some values of the requirement do not exist and are ignored." "Remove them, or correct them.";
        TooManyRequirements "too_many_requirements": "Labels and requirements together are more than a NodeClaim can hold." "Remove some, or join those of the same key.";
        Effect "effect": "The effect of a taint is unknown." "One of NoSchedule, PreferNoSchedule, NoExecute.";
        DuplicateTaint "duplicate_taint": "Two taints, startup taints included, have the same key and effect." "Remove one.";
        Budget "budget": "The budget cannot be understood. Until it can, it allows no disruption for its reasons." "The message names the part that is wrong.";
        BudgetNeverActive "budget_never_active": "The schedule names a date that does not exist, so the budget limits nothing." "Correct the schedule.";
        EmptyReasons "empty_reasons": "`reasons: []` limits all reasons here, and none in Karpenter." "Leave the field out, or name reasons.";
        Schedule "schedule": "The schedule cannot be read." "Five cron fields, or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.";
        NeverActive "never_active": "The schedule names a date that does not exist." "Correct the schedule.";
        OneScheduleExpected "one_schedule_expected": "A window has both `schedule` and `cron`, or neither." "Give one of them.";
        Action "action": "A maintenance window names an action that does not exist." "One of Consolidation, EmptyConsolidation, NonEmptyConsolidation, Drift, Expiration, Rebalance, Repair.";
        ConsolidationPolicy "consolidation_policy": "The consolidation policy is unknown." "The message names it.";
        OutOfRange "out_of_range": "A number is negative or too large." "Use a smaller one.";
        UnknownValue "unknown_value": "A word of a built-in object is unknown here, as one of a later Kubernetes may be." "Nothing: the object is left alone.";
        TooMuch "too_much": "Amounts of a resource add up to more than can be counted." "Correct the amounts.";
        UnlimitedOutsideWindow "unlimited_outside_window": "Every budget for a reason has a schedule, so at other times there is no limit, not even the default of 10%." "Add a budget without schedule for the rest of the time.";
    }
    ConversionError {
        WrongType "wrong_type": "A field of the original has the wrong type; the document was not converted." "Correct the original.";
        EmptinessAndConsolidation "emptiness_and_consolidation": "`ttlSecondsAfterEmpty` and `consolidation.enabled` exclude each other; the document was not converted." "Remove one of the two.";
        ProviderAndProviderRef "provider_and_provider_ref": "`provider` and `providerRef` exclude each other; the document was not converted." "Remove one of the two.";
        NoNodeClass "no_node_class": "The Provisioner names no node template." "Make sure that the EC2NodeClass which the pool now names exists, or name another.";
        LaunchTemplate "launch_template": "Launch templates do not exist in v1; the document was not converted." "Move the template's settings into the fields of the node template.";
        SelectorMissing "selector_missing": "v1 needs a selector that the original does not have." "Add it to the result.";
        AmiFamilyNeedsTerms "ami_family_needs_terms": "The image family has no default images in v1; the document was not converted." "Add an `amiSelector` to the original.";
        UnknownAmiFamily "unknown_ami_family": "v1 does not know the image family; the document was not converted." "Correct it, or use `Custom` with an `amiSelector`.";
        RoleMissing "role_missing": "The template names no instance profile, and the default one is gone in v1." "Pass `--role`, or fill in `spec.role` of the result.";
        MaintenanceIncomplete "maintenance_incomplete": "`maintenanceCron` and `maintenanceDurationSeconds` only work together; no window was made." "Give both, or neither.";
    }
    ConversionWarning {
        ExpiryIsForceful "expiry_is_forceful": "Expiry used to wait for replacements; in v1 an expired node is drained at once, whatever the budgets say." "A MaintenanceWindow can hold it back; or choose a longer `expireAfter`.";
        DriftIsOn "drift_is_on": "Drift used to be off by default and is always on in v1." "`--freeze-drift` adds a budget against it.";
        IdsWithOtherKeys "ids_with_other_keys": "A selector mixes ids with tags, which v1 forbids; only the ids were kept." "Check that they select what is meant.";
        MetadataOptionsIncomplete "metadata_options_incomplete": "Absent `metadataOptions` get the defaults of v1, which are stricter." "Write them out where the old ones are needed.";
        ForbiddenTag "forbidden_tag": "The tag is set by the controller in v1 and was left out." "Nothing.";
        ContainerRuntime "container_runtime": "The container runtime can no longer be chosen; it was left out." "Nothing.";
        KubeletLeftOut "kubelet_left_out": "Kubelet settings belong to the EC2NodeClass in v1, and that class is not in the input." "Convert both at once, or add the settings to the class by hand.";
        KubeletWithoutClass "kubelet_without_class": "A claim has kubelet settings, which belong to the EC2NodeClass in v1." "Nothing, if the class has them.";
        NodeClassCopied "node_class_copied": "Pools with different kubelet settings shared a class; one of them got a copy." "Nothing; or choose better names.";
        ClaimLaunchesInstance "claim_launches_instance": "Applied, the claim launches a new instance; it does not take over a running one." "Do not apply it; let the pool make its own.";
        LegacyAnnotation "legacy_annotation": "An annotation was replaced by `karpenter.sh/do-not-disrupt`, which holds back more." "Check that this is meant.";
        AnnotationWithoutEqual "annotation_without_equal": "An annotation has no equal in v1 and was left out." "A MaintenanceWindow with a selector can do the same.";
        MaintenanceWindowMade "maintenance_window_made": "The Provisioner's maintenance settings became a MaintenanceWindow." "Install its definition: `kerf crds`.";
        SettingsConfigMap "settings_config_map": "The settings of this ConfigMap are no longer read." "Use the flags and environment variables of the controller.";
        LegacyName "legacy_name": "A workload or node uses a label or annotation that v1 calls otherwise." "`kerf convert --rewrite-workloads` renames it.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_words_and_texts_are_sentences() {
        let mut ids: Vec<&str> = RuleId::ALL.iter().map(|rule| rule.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), RuleId::ALL.len());
        for rule in RuleId::ALL {
            assert!(rule.as_str().chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{rule}");
            assert!([rule.meaning(), rule.remedy()].iter().all(|text| text.ends_with('.')), "{rule}");
        }
    }
}
