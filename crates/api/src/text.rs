//! Values whose text the user chose and the API keeps: durations, quantities, times.
//!
//! The wire types hold that text unread. What the schema admits must decode (a list with `9999999999h` in it is still a
//! list), and what is written back must be what was read (GitOps tools compare text). Parsing happens one step later.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::schema::{NILLABLE_DURATION, PLAIN_DURATION, QUANTITY};

macro_rules! text {
    ($(#[$doc:meta])* $name:ident, $schema:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.to_owned())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $schema
            }
        }
    };
}

text!(
    /// A duration in whole hours, minutes and seconds, such as `1h30m`.
    DurationText,
    json_schema!({ "type": "string", "pattern": PLAIN_DURATION })
);

text!(
    /// A duration such as `720h`, or `Never`.
    NillableDurationText,
    json_schema!({ "type": "string", "pattern": NILLABLE_DURATION })
);

text!(
    /// A point in time. Kept as text because the API server's `date-time` check admits more than RFC 3339 does.
    TimeText,
    json_schema!({ "type": "string", "format": "date-time" })
);

/// A Kubernetes quantity as written: `4`, `"4"`, `500m`, `16Gi`.
///
/// The API server stores a number as a number, so `4` and `"4"` differ here though they mean the same amount.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum QuantityText {
    Number(serde_json::Number),
    Text(String),
}

impl From<&str> for QuantityText {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl fmt::Display for QuantityText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl JsonSchema for QuantityText {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "QuantityText".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "x-kubernetes-int-or-string": true, "pattern": QUANTITY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_keep_the_form_they_were_written_in() {
        for text in ["4", "\"4\"", "\"16Gi\"", "0", "9223372036854775807", "1e30", "\"1e3\""] {
            let quantity: QuantityText = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&quantity).unwrap().replace('+', ""), text);
            assert_eq!(quantity.to_string().replace('+', ""), text.trim_matches('"'));
        }
    }

    #[test]
    fn a_duration_too_long_to_count_still_decodes() {
        let duration: NillableDurationText = serde_json::from_str("\"9999999999h\"").unwrap();
        assert_eq!(duration.as_str(), "9999999999h");
    }
}
