//! Feature gates: `Name=bool`, with commas between them and spaces anywhere (sheet 01 §12).

/// What was asked for, as far as it means something.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gates {
    pub static_capacity: bool,
    /// Switched on, and known to the reference, but nothing here looks at them yet.
    pub without_effect: Vec<String>,
    /// Unknown, or without a value that says on or off.
    pub unknown: Vec<String>,
}

const NOT_THERE_YET: [&str; 4] = ["NodeRepair", "SpotToSpotConsolidation", "NodeOverlay", "CapacityBuffer"];

impl Gates {
    pub fn parse(text: &str) -> Self {
        let mut gates = Self::default();
        for gate in text.split(',').map(str::trim).filter(|gate| !gate.is_empty()) {
            let (name, value) = gate.split_once('=').unwrap_or((gate, ""));
            match (name.trim(), value.trim().to_ascii_lowercase().parse()) {
                ("StaticCapacity", Ok(value)) => gates.static_capacity = value,
                ("ReservedCapacity", Ok(true)) => {}
                ("ReservedCapacity", Ok(false)) => gates.without_effect.push(gate.to_owned()),
                (name, Ok(value)) if NOT_THERE_YET.contains(&name) => {
                    gates.without_effect.extend(value.then(|| name.to_owned()));
                }
                _ => gates.unknown.push(gate.to_owned()),
            }
        }
        gates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_what_means_nothing_is_told() {
        let gates = Gates::parse(" StaticCapacity = true, NodeRepair=true,NodeOverlay=false,Teleport=true,Drift,");
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert!(gates.static_capacity);
        assert_eq!(gates.without_effect, texts(&["NodeRepair"]));
        assert_eq!(gates.unknown, texts(&["Teleport=true", "Drift"]));
        assert_eq!(Gates::parse(""), Gates::default());
    }
}
