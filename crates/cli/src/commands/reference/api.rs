//! The fields of every kind, from the custom resource definitions.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use kerf_api::crds;

use super::{code, table_header, table_row};

const INTRODUCTION: &str = "\
# API

The fields of every kind, with the label rules of all providers. `[]` stands for the items of a list, `.*` for the
values of a map. **Kerf** marks what Karpenter does not have; see [differences](differences.md). Left out: what every
Kubernetes object has (`metadata`), and the conditions in `status`.
";

/// The words that end the description of a field that Karpenter does not have.
const EXTENSION: &str = " A Kerf extension.";

/// The kind that Karpenter does not have.
const OWN_KIND: &str = "MaintenanceWindow";

pub fn page() -> String {
    crds(None).iter().fold(INTRODUCTION.to_string(), |page, crd| page + "\n" + &kind(crd))
}

fn kind(crd: &CustomResourceDefinition) -> String {
    let names = &crd.spec.names;
    let mut text = format!("## {}{}\n\n", names.kind, if names.kind == OWN_KIND { " (Kerf)" } else { "" });
    for version in &crd.spec.versions {
        let short: Vec<String> = names.short_names.iter().flatten().map(|name| code(name)).collect();
        let scope = crd.spec.scope.to_lowercase();
        text.push_str(&format!("`{}/{}`, {scope} scope, `{}`", crd.spec.group, version.name, names.plural));
        if !short.is_empty() {
            text.push_str(&format!(", short {}", short.join(" ")));
        }
        let Some(root) = version.schema.as_ref().and_then(|schema| schema.open_api_v3_schema.as_ref()) else {
            continue;
        };
        text.push_str(&format!("\n\n{}\n\n", root.description.as_deref().unwrap_or_default()));
        text.push_str(&table_header(&["Field", "Type", "Default", "Rules", "Meaning"]));
        let mut rows = Vec::new();
        for part in ["spec", "status"] {
            if let Some(schema) = root.properties.as_ref().and_then(|properties| properties.get(part)) {
                field(part, schema, is_required(root, part), false, &mut rows);
            }
        }
        text.extend(rows);
    }
    text
}

/// The row of a field, then those of the fields below it.
fn field(path: &str, schema: &JSONSchemaProps, required: bool, is_own: bool, rows: &mut Vec<String>) {
    if path == "status.conditions" {
        return;
    }
    let description = schema.description.as_deref().unwrap_or_default();
    let is_own = is_own || description.ends_with(EXTENSION);
    let meaning = description.strip_suffix(EXTENSION).unwrap_or(description);
    let mark = if is_own { "**Kerf** " } else { "" };
    let default = schema.default.as_ref().map(|value| code(&value.0.to_string())).unwrap_or_default();
    rows.push(table_row(&[
        &format!("{mark}{}", code(path)),
        &type_of(schema),
        &default,
        &rules(schema, required).join("; "),
        meaning,
    ]));
    for (name, property) in schema.properties.iter().flatten() {
        field(&format!("{path}.{name}"), property, is_required(schema, name), is_own, rows);
    }
    if let Some(item) = item(schema)
        && (item.properties.is_some() || !rules(item, false).is_empty())
    {
        field(&format!("{path}[]"), item, false, is_own, rows);
    }
    if let Some(value) = value(schema)
        && (value.properties.is_some() || !rules(value, false).is_empty())
    {
        field(&format!("{path}.*"), value, false, is_own, rows);
    }
}

fn is_required(parent: &JSONSchemaProps, name: &str) -> bool {
    parent.required.iter().flatten().any(|required| required == name)
}

fn item(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.items {
        Some(JSONSchemaPropsOrArray::Schema(item)) => Some(item),
        Some(JSONSchemaPropsOrArray::Schemas(_)) | None => None,
    }
}

fn value(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match &schema.additional_properties {
        Some(JSONSchemaPropsOrBool::Schema(value)) => Some(value),
        Some(JSONSchemaPropsOrBool::Bool(_)) | None => None,
    }
}

fn type_of(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "integer or string".into();
    }
    match (schema.type_.as_deref().unwrap_or("any"), item(schema), value(schema)) {
        ("array", Some(item), _) => format!("list of {}", type_of(item)),
        ("object", _, Some(value)) => format!("map of {}", type_of(value)),
        (name, _, _) => schema.format.as_deref().unwrap_or(name).to_owned(),
    }
}

fn rules(schema: &JSONSchemaProps, required: bool) -> Vec<String> {
    let mut rules = Vec::new();
    if required {
        rules.push("required".into());
    }
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> = values.iter().map(|value| code(&value.0.to_string().replace('"', ""))).collect();
        rules.push(format!("one of {}", values.join(", ")));
    }
    for (name, limit) in [("at least", schema.minimum), ("at most", schema.maximum)] {
        rules.extend(limit.map(|limit| format!("{name} {limit}")));
    }
    for (what, least, most) in [
        ("characters", schema.min_length, schema.max_length),
        ("items", schema.min_items, schema.max_items),
        ("entries", schema.min_properties, schema.max_properties),
    ] {
        rules.extend(match (least, most) {
            (Some(least), Some(most)) => Some(format!("{least} to {most} {what}")),
            (Some(least), None) => Some(format!("at least {least} {what}")),
            (None, Some(most)) => Some(format!("at most {most} {what}")),
            (None, None) => None,
        });
    }
    rules.extend(schema.pattern.as_ref().map(|pattern| format!("matches {}", code(pattern))));
    let cel = schema.x_kubernetes_validations.iter().flatten();
    rules.extend(cel.map(|rule| rule.message.clone().unwrap_or_else(|| code(&rule.rule))));
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_our_own_are_marked_and_others_are_not() {
        let page = page();
        let marked = page.lines().filter(|line| line.starts_with("| **Kerf** ")).count();
        assert!(page.contains("| **Kerf** `spec.disruption.budgets[].timeZone` |"));
        assert!(
            page.contains("| **Kerf** `spec.disruption.drift.enabled` |"),
            "fields below a marked one are ours too"
        );
        assert!(page.contains("| `spec.disruption.budgets[].schedule` |"));
        assert_eq!(marked, 10);
    }

    #[test]
    fn a_row_has_type_default_and_rules() {
        let page = page();
        let row = page.lines().find(|line| line.starts_with("| `spec.disruption.budgets` |")).unwrap();
        for part in ["list of object", "`[{\"nodes\":\"10%\"}]`", "at most 50 items"] {
            assert!(row.contains(part), "{row}");
        }
    }
}
