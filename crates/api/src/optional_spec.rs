//! Node classes may be created without a `spec`; they must decode all the same.

/// Gives a spec type marked `#[serde(remote = "Self")]` its serde traits, an absent spec reading as the default.
///
/// serde offers a missing field to its type as an absent `Option`, so it is enough to ask for an `Option` first.
macro_rules! optional_spec {
    ($spec:ident) => {
        impl<'de> serde::Deserialize<'de> for $spec {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Present($spec);

                impl<'de> serde::Deserialize<'de> for Present {
                    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                        $spec::deserialize(deserializer).map(Self)
                    }
                }

                let present: Option<Present> = serde::Deserialize::deserialize(deserializer)?;
                Ok(present.map(|Present(spec)| spec).unwrap_or_default())
            }
        }

        impl serde::Serialize for $spec {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                $spec::serialize(self, serializer)
            }
        }
    };
}

pub(crate) use optional_spec;
