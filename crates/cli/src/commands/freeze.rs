//! `kerf freeze` and `kerf thaw`.

use std::collections::BTreeMap;

use anyhow::{Context, bail};
use clap::ValueEnum;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use kerf_model::label::{annotation, check_qualified_name, check_value};
use kerf_model::maintenance::Action;
use serde_json::{Map, Value, json};

use super::scenario_choice::duration;
use crate::clock;
use crate::output::{self, ObjectFormat, Outcome};

/// Keep Kerf from disrupting nodes by choice, for a while or until thawed
///
/// Makes a MaintenanceWindow that holds back every action whose time Kerf chooses: consolidation, drift, expiration,
/// rebalancing and repair. Pending pods still get nodes, and what was deleted by hand still goes. Freezing again replaces
/// the window.
#[derive(clap::Args)]
#[command(after_help = FREEZE_EXAMPLES)]
pub struct FreezeArgs {
    /// How long, such as 90m or 2h [default: until thawed]
    #[arg(long = "for", value_parser = duration, value_name = "DURATION")]
    for_: Option<SignedDuration>,
    /// Why, for whoever finds the window
    #[arg(long, default_value = "", value_name = "TEXT")]
    reason: String,
    /// Only nodes with these labels, such as team=a,tier=db
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only these actions
    #[arg(long, value_enum, value_delimiter = ',', value_name = "ACTIONS")]
    actions: Vec<ActionName>,
    #[command(flatten)]
    common: Common,
}

const FREEZE_EXAMPLES: &str = "\
Examples:
  kerf freeze --for 2h --reason 'black friday'
  kerf freeze -l team=databases --actions Drift,Expiration
  kerf freeze --for 8h --dry-run -o yaml | kubectl apply -f -";

/// Let Kerf disrupt nodes again: remove what freeze made
#[derive(clap::Args)]
#[command(after_help = THAW_EXAMPLES)]
pub struct ThawArgs {
    #[command(flatten)]
    common: Common,
}

const THAW_EXAMPLES: &str = "\
Examples:
  kerf thaw
  kerf thaw --name kerf-freeze-databases --dry-run";

#[derive(clap::Args)]
struct Common {
    /// The name of the MaintenanceWindow
    #[arg(long, default_value = "kerf-freeze", value_name = "NAME")]
    name: String,
    /// Print what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    /// How to print the object of a dry run
    #[arg(short, long, value_enum, default_value = "yaml", value_name = "FORMAT")]
    output: ObjectFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "PascalCase")]
enum ActionName {
    /// Of empty nodes and of others
    Consolidation,
    /// Replacing nodes that are not as their pool wants them
    Drift,
    /// Ending nodes at their age
    Expiration,
    /// Leaving spot nodes that may be reclaimed
    Rebalance,
    /// Replacing or rebooting sick nodes
    Repair,
}

const ALL_ACTIONS: [&str; 5] = ["Consolidation", "Drift", "Expiration", "Rebalance", "Repair"];

pub fn freeze(args: &FreezeArgs) -> anyhow::Result<Outcome> {
    let now = clock::now();
    let window = window(args, now)?;
    if args.common.dry_run {
        return print_object(&window, args.common.output);
    }
    write::apply(&args.common.name, &window)?;
    let until = match args.for_.and_then(|length| now.checked_add(length).ok()) {
        Some(until) => format!("until {}", output::moment(until)),
        None => "until thawed (kerf thaw)".to_owned(),
    };
    let nodes = args.selector.as_ref().map_or_else(|| "all nodes".to_owned(), |labels| format!("nodes with {labels}"));
    let actions = actions(args).join(", ");
    output::print(&format!("Frozen {until}: {nodes}, for {actions} (MaintenanceWindow {})\n", args.common.name))?;
    Ok(Outcome::Fine)
}

pub fn thaw(args: &ThawArgs) -> anyhow::Result<Outcome> {
    let name = &args.common.name;
    if args.common.dry_run {
        let object = json!({
            "apiVersion": "karpenter.sh/v1alpha1", "kind": "MaintenanceWindow", "metadata": {"name": name},
        });
        return print_object(&object, args.common.output);
    }
    let message = match write::delete(name)? {
        true => format!("Thawed: MaintenanceWindow {name} is removed\n"),
        false => format!("Nothing is frozen: there is no MaintenanceWindow {name}\n"),
    };
    output::print(&message)?;
    Ok(Outcome::Fine)
}

fn print_object(object: &Value, format: ObjectFormat) -> anyhow::Result<Outcome> {
    match format {
        ObjectFormat::Json => output::print_json(object)?,
        ObjectFormat::Yaml => {
            let fields: Map<String, Value> = object.as_object().cloned().unwrap_or_default();
            output::print(&format!("---\n{}", kerf_api::yaml::object_to_yaml(&fields)))?;
        }
    }
    Ok(Outcome::Fine)
}

fn actions(args: &FreezeArgs) -> Vec<&'static str> {
    if args.actions.is_empty() {
        return ALL_ACTIONS.to_vec();
    }
    let name = |action: &ActionName| match action {
        ActionName::Consolidation => "Consolidation",
        ActionName::Drift => Action::Drift.label(),
        ActionName::Expiration => Action::Expiration.label(),
        ActionName::Rebalance => Action::Rebalance.label(),
        ActionName::Repair => Action::Repair.label(),
    };
    args.actions.iter().map(name).collect()
}

fn window(args: &FreezeArgs, now: Timestamp) -> anyhow::Result<Value> {
    let mut spec = json!({"actions": actions(args)});
    let mut annotations = BTreeMap::new();
    if !args.reason.is_empty() {
        annotations.insert("kerf.sh/reason", args.reason.clone());
    }
    if let Some(length) = args.for_ {
        spec["schedules"] = json!([once(now, length)]);
        if let Ok(until) = now.checked_add(length) {
            annotations.insert(annotation::FROZEN_UNTIL, until.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        }
    }
    if let Some(text) = &args.selector {
        spec["selector"] = json!({"matchLabels": labels(text)?});
    }
    let mut object = json!({
        "apiVersion": "karpenter.sh/v1alpha1",
        "kind": "MaintenanceWindow",
        "metadata": {"name": args.common.name},
        "spec": spec,
    });
    if !annotations.is_empty() {
        object["metadata"]["annotations"] = json!(annotations);
    }
    Ok(object)
}

/// From the minute that is now. Schedules recur, and this one would come again in a year, but for the annotation.
fn once(now: Timestamp, length: SignedDuration) -> Value {
    let minute = now.to_zoned(TimeZone::UTC);
    let into_minute = SignedDuration::from_secs(i64::from(minute.second()));
    // Whole seconds, rounded up.
    let secs = (length + into_minute).as_secs() + i64::from(length.subsec_nanos() > 0);
    let (hours, minutes, seconds) = (secs / 3600, secs / 60 % 60, secs % 60);
    json!({
        "schedule": format!("{} {} {} {} *", minute.minute(), minute.hour(), minute.day(), minute.month()),
        "duration": format!("{hours}h{minutes}m{seconds}s"),
        "timeZone": "UTC",
    })
}

fn labels(text: &str) -> anyhow::Result<BTreeMap<&str, &str>> {
    let mut labels = BTreeMap::new();
    for pair in text.split(',').filter(|pair| !pair.is_empty()) {
        let Some((key, value)) = pair.split_once('=') else {
            bail!("{pair:?} is no label: write KEY=VALUE, with commas between them");
        };
        // A selector of a label that no node can have would hold back nothing.
        let value = value.trim_start_matches('=');
        check_qualified_name(key).and(check_value(value)).with_context(|| format!("{pair:?} is no label"))?;
        if labels.insert(key, value).is_some_and(|before| before != value) {
            bail!("no node has two values of {key}");
        }
    }
    if labels.is_empty() {
        bail!("the selector names no label");
    }
    Ok(labels)
}

#[cfg(not(feature = "controller"))]
mod write {
    use super::*;

    const NO_CLIENT: &str = "this build writes to no cluster: use --dry-run";

    pub fn apply(_: &str, _: &Value) -> anyhow::Result<()> {
        bail!(NO_CLIENT)
    }

    pub fn delete(_: &str) -> anyhow::Result<bool> {
        bail!(NO_CLIENT)
    }
}

#[cfg(feature = "controller")]
mod write {
    use kerf_api::maintenance_window::MaintenanceWindow;
    use kube::api::{Api, DeleteParams, Patch, PatchParams};

    use super::*;
    use crate::cluster::live::{block_on, client};

    pub fn apply(name: &str, window: &Value) -> anyhow::Result<()> {
        block_on(async {
            let api: Api<MaintenanceWindow> = Api::all(client().await?);
            let parameters = PatchParams::apply("kerf").force();
            let written = api.patch(name, &parameters, &Patch::Apply(window)).await;
            written.with_context(|| format!("cannot write MaintenanceWindow {name}")).map(drop)
        })
    }

    /// Whether it was there.
    pub fn delete(name: &str) -> anyhow::Result<bool> {
        block_on(async {
            let api: Api<MaintenanceWindow> = Api::all(client().await?);
            match api.delete(name, &DeleteParams::default()).await {
                Ok(_) => Ok(true),
                Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
                Err(error) => Err(error).with_context(|| format!("cannot delete MaintenanceWindow {name}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kerf_api::change::{Reader, WatchedKind};
    use kerf_model::change::Change;

    fn frozen(length: &str, from: &str) -> Value {
        let now: Timestamp = from.parse().unwrap();
        json!({
            "metadata": {"name": "f"},
            "spec": {"actions": ALL_ACTIONS, "schedules": [once(now, duration(length).unwrap())]},
        })
    }

    #[test]
    fn a_freeze_holds_for_as_long_as_it_was_asked_for() {
        let from = "2026-12-31T23:58:40Z";
        let seen = Reader::new(None).seen_json(WatchedKind::MaintenanceWindow, &frozen("2h", from)).unwrap();
        let Change::MaintenanceWindow(_, Some(window)) = seen.change else { panic!("a window") };
        let at = |text: &str| window.spec.is_active(text.parse().unwrap());
        assert!(at(from) && at("2027-01-01T01:58:39Z"));
        assert!(!at("2026-12-31T23:57:59Z") && !at("2027-01-01T01:58:41Z"));
        assert_eq!(window.spec.actions.len(), Action::ALL.len());
    }

    #[test]
    fn a_selector_is_a_list_of_labels() {
        assert_eq!(labels("team=a,tier==db").unwrap(), BTreeMap::from([("team", "a"), ("tier", "db")]));
        for wrong in ["team", "", "team!=a", "=a", "team=a,team=b"] {
            assert!(labels(wrong).is_err(), "{wrong}");
        }
    }
}
