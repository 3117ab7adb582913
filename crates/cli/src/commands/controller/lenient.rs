//! Values from the environment that cannot be read give the default, with a warning; flags that cannot be read end the
//! start. That is how the reference does it: an installation with a wrong variable runs, and has to go on running.

use std::ffi::OsStr;
use std::fmt::Display;
use std::str::FromStr;

use clap::builder::{TypedValueParser, ValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{Arg, Command};

/// A setting, and what was ignored for it.
#[derive(Debug, Clone)]
pub struct Setting<T> {
    pub value: T,
    pub ignored: Option<String>,
}

/// Reads text of a flag (`false`) or of the environment (`true`).
type Read<T> = fn(&str, bool) -> Result<T, String>;

#[derive(Clone)]
struct OrDefault<T> {
    read: Read<T>,
}

/// For anything that parses.
pub fn lenient<T>() -> ValueParser
where
    T: FromStr<Err: Display> + Clone + Send + Sync + 'static,
{
    ValueParser::new(OrDefault { read: |text, _| text.parse::<T>().map_err(|error| error.to_string()) })
}

/// Flags are `true` or `false`; variables know Go's other words too.
pub fn lenient_bool() -> ValueParser {
    ValueParser::new(OrDefault { read: read_bool })
}

/// As [`lenient_bool`] does.
pub fn read_bool(text: &str, from_environment: bool) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        "1" | "t" | "T" | "TRUE" | "True" if from_environment => Ok(true),
        "0" | "f" | "F" | "FALSE" | "False" if from_environment => Ok(false),
        _ => Err("it is true or false".to_owned()),
    }
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for OrDefault<T> {
    type Value = Setting<T>;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Setting<T>, clap::Error> {
        self.parse_ref_(command, arg, value, ValueSource::CommandLine)
    }

    fn parse_ref_(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
        source: ValueSource,
    ) -> Result<Setting<T>, clap::Error> {
        let from_environment = source == ValueSource::EnvVariable;
        let text = value.to_string_lossy();
        let reason = match (self.read)(&text, from_environment) {
            Ok(value) => return Ok(Setting { value, ignored: None }),
            Err(reason) => reason,
        };
        let default = arg.and_then(|arg| arg.get_default_values().first()).map(|text| text.to_string_lossy());
        let default = default.and_then(|text| (self.read)(&text, false).ok());
        match default.filter(|_| from_environment) {
            Some(value) => {
                let name = arg.and_then(Arg::get_env).map(|name| name.to_string_lossy()).unwrap_or_default();
                // An empty variable is one that nobody has set.
                let ignored = (!text.is_empty()).then(|| format!("{name}={text}: {reason}"));
                Ok(Setting { value, ignored })
            }
            None => Err(refuse(command, arg, &text, &reason)),
        }
    }
}

fn refuse(command: &Command, arg: Option<&Arg>, text: &str, reason: &str) -> clap::Error {
    let mut error = clap::Error::new(ErrorKind::InvalidValue).with_cmd(command);
    let arg = arg.map(ToString::to_string).unwrap_or_default();
    error.insert(ContextKind::InvalidArg, ContextValue::String(arg));
    error.insert(ContextKind::InvalidValue, ContextValue::String(text.to_owned()));
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![reason.to_owned().into()]));
    error
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, source: ValueSource) -> Result<Setting<u16>, clap::Error> {
        let arg = Arg::new("port").long("port").env("PORT").default_value("8080").num_args(1);
        let parser = OrDefault { read: |text, _| text.parse::<u16>().map_err(|error| error.to_string()) };
        parser.parse_ref_(&Command::new("test"), Some(&arg), OsStr::new(text), source)
    }

    #[test]
    fn a_variable_that_cannot_be_read_gives_the_default_and_says_so() {
        let setting = parse("many", ValueSource::EnvVariable).unwrap();
        assert_eq!(setting.value, 8080);
        assert!(setting.ignored.unwrap().starts_with("PORT=many: "));
        let setting = parse("", ValueSource::EnvVariable).unwrap();
        assert_eq!((setting.value, setting.ignored), (8080, None));
        assert_eq!(parse("9", ValueSource::EnvVariable).unwrap().value, 9);
    }

    #[test]
    fn a_flag_that_cannot_be_read_is_an_error() {
        assert_eq!(parse("9", ValueSource::CommandLine).unwrap().value, 9);
        let error = parse("many", ValueSource::CommandLine).unwrap_err().to_string();
        assert!(error.contains("many"), "{error}");
    }

    #[test]
    fn go_has_more_words_for_yes_and_no_than_flags_have() {
        assert_eq!(read_bool("T", true), Ok(true));
        assert_eq!(read_bool("0", true), Ok(false));
        assert!(read_bool("T", false).is_err() && read_bool("yes", true).is_err());
    }
}
