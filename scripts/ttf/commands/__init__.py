"""The commands of `ttf`, a module each; ttf.commands.command_line reads what was typed."""
