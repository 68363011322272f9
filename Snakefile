# Entry point: `snakemake` in the checkout finds the workflow and profiles/default.
include: "workflow/main.smk"


# An included rule is never the default target, so the entry file needs a default rule of its own.
rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
