"""Rule derive_node_errors: make errors of nodes, the spans in which they were watched, and an account of all lines."""

from ttf.engine.process.entry import run_rule


def main(snakemake) -> str:
    from pathlib import Path

    from ttf.engine.storage.on_disk import scan_parquet
    from ttf.engine.storage.tables import write_product
    from ttf.raw.node_logs.node_names import NodeNames
    from ttf.raw.node_logs.reader import LogOptions, read_node_logs
    from ttf.raw.node_logs.rules import Rules
    from ttf.records.node_errors import (
        find_watch,
        find_window,
        list_trace_nodes,
        mark_boot_errors,
        measure_clock_offsets,
        tabulate_lines,
    )
    from ttf.records.record_contracts import NODE_ERRORS, NODE_LOG_LINES, NODE_LOG_WATCH

    inputs, params, output = dict(snakemake.input.items()), snakemake.params, snakemake.output
    frames = {
        name: scan_parquet(inputs[name]) for name in ("jobs", "nodes", "placements", "exposure") if name in inputs
    }
    nodes = list_trace_nodes(frames)
    files = inputs["node_logs"]
    options = LogOptions(
        Rules.from_options(params.rules),
        window=find_window(frames["jobs"]) if "jobs" in frames else None,
        nodes=NodeNames(nodes),
        merge_s=params.options["merge_s"],
        gap_s=params.options["gap_s"],
        **params.times,
    )
    logs = read_node_logs([Path(file) for file in ([files] if isinstance(files, str) else files)], options)
    errors = mark_boot_errors(logs, params.options["boot_s"])
    offsets = measure_clock_offsets(logs.job_starts, frames.get("placements"))
    watch = find_watch(logs, nodes, options.gap_s, offsets)
    lines = tabulate_lines(logs.account, errors, watch)
    write_product(errors, NODE_ERRORS, output.node_errors)
    write_product(watch, NODE_LOG_WATCH, output.node_log_watch)
    write_product(lines, NODE_LOG_LINES, output.node_log_lines)
    return f"{errors.height:,} errors in {lines['rows'][0]:,} lines of {watch['node'].n_unique():,} nodes"


run_rule(main, snakemake)
