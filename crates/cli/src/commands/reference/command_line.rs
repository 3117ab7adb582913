//! The help texts, as one page.

use clap::CommandFactory;

/// Wide enough for most lines, narrow enough for a page.
const WIDTH: usize = 100;

pub fn page() -> String {
    // What would be an environment variable's value here is none of the reader's business: clap is told to hide it.
    let mut root = crate::Cli::command().term_width(WIDTH);
    root.build();
    let mut page = String::from("# The command line\n\n");
    page.push_str(&help(&root));
    for command in root.get_subcommands().filter(|command| !command.is_hide_set() && command.get_name() != "help") {
        page.push_str(&format!("\n## kerf {}\n\n{}", command.get_name(), help(command)));
    }
    page
}

fn help(command: &clap::Command) -> String {
    let text = command.clone().render_long_help().to_string();
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    format!("```text\n{}\n```\n", lines.join("\n").trim())
}
