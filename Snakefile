# The front door, so that `snakemake` typed in the checkout finds the workflow and profiles/default.
include: "workflow/main.smk"


# An included rule is never the default target: without this, nothing would be planned.
rule default:
    default_target: True
    input:
        rules.all.input,
    localrule: True
