//! `kerf completion`.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::output::{self, Outcome};

/// Print a completion script for a shell
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// The shell that will read it
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  kerf completion bash > /etc/bash_completion.d/kerf
  source <(kerf completion zsh)";

pub fn run(args: &Args) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "kerf", &mut script);
    output::print(&String::from_utf8_lossy(&script))?;
    Ok(Outcome::Fine)
}
