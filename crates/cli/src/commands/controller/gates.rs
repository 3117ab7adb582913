//! Feature gates: `Name=bool`, with commas between them and spaces anywhere (sheet 01 §12, sheet 08 A5).

use super::lenient::read_bool;

/// What was asked for, as far as it means something.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gates {
    pub node_overlay: bool,
    pub capacity_buffer: bool,
    /// Those that the engine may know.
    pub named: Vec<(String, bool)>,
    /// Asked for, and known to the reference, but nothing here looks at them yet.
    pub without_effect: Vec<String>,
}

/// A list that is not one. The reference does not start with it either.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is no feature gate: write Name=true or Name=false, with commas between them")]
pub struct InvalidGate(String);

/// With what they are when nobody names them.
const NOT_THERE_YET: [(&str, bool); 1] = [("ReservedCapacity", true)];

impl Gates {
    pub fn parse(text: &str) -> Result<Self, InvalidGate> {
        let mut gates = Self::default();
        for gate in text.split(',').map(str::trim).filter(|gate| !gate.is_empty()) {
            let invalid = || InvalidGate(gate.to_owned());
            let (name, value) = gate.split_once('=').ok_or_else(invalid)?;
            let (name, value) = (name.trim(), read_bool(value.trim(), true).map_err(|_| invalid())?);
            match NOT_THERE_YET.iter().find(|(known, _)| *known == name) {
                _ if name == "NodeOverlay" => gates.node_overlay = value,
                _ if name == "CapacityBuffer" => gates.capacity_buffer = value,
                Some((_, default)) => gates.without_effect.extend((value != *default).then(|| gate.to_owned())),
                None => gates.named.push((name.to_owned(), value)),
            }
        }
        Ok(gates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_and_what_means_nothing_is_told() {
        let gates =
            Gates::parse(" StaticCapacity = true, CapacityBuffer=T,Teleport=true,ReservedCapacity=false,").unwrap();
        let texts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
        let named: Vec<_> = gates.named.iter().map(|(name, value)| (name.as_str(), *value)).collect();
        assert_eq!(named, [("StaticCapacity", true), ("Teleport", true)]);
        assert!(gates.capacity_buffer && !gates.node_overlay);
        assert_eq!(gates.without_effect, texts(&["ReservedCapacity=false"]));
        assert_eq!(Gates::parse("").unwrap(), Gates::default());
    }

    #[test]
    fn a_gate_without_a_value_is_an_error_as_in_case_64() {
        for text in ["X=", "StaticCapacity", "StaticCapacity=maybe"] {
            assert!(Gates::parse(text).is_err(), "{text}");
        }
    }
}
