# The inputs and outputs of every analysis. Written by `make docs` from the declarations in
# scripts/ttf/analyses/<section>/<name>/__init__.py; optional inputs that a trace lacks are omitted (study.smk).


rule split_outcomes:
    """How do jobs end, and after what run time?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
    output:
        outcomes=table("results/{trace}/tables/outcomes.csv", "Outcomes"),
        outcomes_gpu=table("results/{trace}/tables/outcomes_gpu.csv", "Outcomes"),
        outcomes_by_gpus=table("results/{trace}/tables/outcomes_by_gpus.csv", "Outcomes"),
        ended_jobs=table("results/{trace}/tables/ended_jobs.csv", "Outcomes"),
        ended_by_node=table("results/{trace}/tables/ended_by_node.csv", "Outcomes"),
        jobs_summary=table("results/{trace}/tables/jobs_summary.csv", "Outcomes"),
        runtime_quantiles=table("results/{trace}/tables/runtime_quantiles.csv", "Outcomes"),
        success="results/{trace}/success.parquet",
        failure="results/{trace}/failure.parquet",
        unresolved="results/{trace}/unresolved.parquet",
        cancelled="results/{trace}/cancelled.parquet",
    log:
        "logs/{trace}/split_outcomes.log",
    benchmark:
        "benchmarks/{trace}/split_outcomes.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("split_outcomes"),
    params:
        **analysis_params("split_outcomes"),
    script:
        "../../scripts/compute.py"


rule describe_states:
    """In which states do jobs end, and how large are they?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
    output:
        states=table("results/{trace}/tables/states.csv", "Outcomes"),
        size_mix=table("results/{trace}/tables/size_mix.csv", "Outcomes"),
        cluster_summary=table("results/{trace}/tables/cluster_summary.csv", "Outcomes"),
    log:
        "logs/{trace}/describe_states.log",
    benchmark:
        "benchmarks/{trace}/describe_states.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("describe_states"),
    params:
        **analysis_params("describe_states"),
    script:
        "../../scripts/compute.py"


rule describe_strata:
    """How do the main numbers differ by account, partition, GPU type and size?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        node_failure_rate="results/{trace}/tables/node_failure_rate.csv",
        attempts=optional_input("results/{trace}/attempts.parquet"),
    output:
        strata=table("results/{trace}/tables/strata.csv", "Outcomes"),
    log:
        "logs/{trace}/describe_strata.log",
    benchmark:
        "benchmarks/{trace}/describe_strata.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("describe_strata"),
    params:
        **analysis_params("describe_strata"),
    script:
        "../../scripts/compute.py"


rule classify_failures:
    """Why do jobs fail, according to log texts, reasons, exit codes and states?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        tails=registry_file("tails"),
        durations_infra=optional_input("results/{trace}/durations_infra.parquet"),
        error_attributions=optional_input("results/{trace}/error_attributions.parquet"),
    output:
        taxonomy=table("results/{trace}/tables/taxonomy.csv", "Causes"),
        failure_kinds=table("results/{trace}/tables/failure_kinds.csv", "Causes"),
        taxonomy_summary=table("results/{trace}/tables/taxonomy_summary.csv", "Causes"),
        unmatched=table("results/{trace}/tables/unmatched.csv", "Causes"),
        log_tails=table("results/{trace}/tables/log_tails.csv", "Causes"),
        reasons="results/{trace}/reasons.parquet",
    log:
        "logs/{trace}/classify_failures.log",
    benchmark:
        "benchmarks/{trace}/classify_failures.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("classify_failures"),
    params:
        **analysis_params("classify_failures"),
    script:
        "../../scripts/compute.py"


rule judge_node_errors:
    """Which errors in the logs of nodes precede failures, and what do they announce?"""
    input:
        node_errors="results/{trace}/node_errors.parquet",
        node_log_watch="results/{trace}/node_log_watch.parquet",
        placements="results/{trace}/placements.parquet",
        nodes="results/{trace}/nodes.parquet",
        jobs="results/{trace}/jobs.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        outages=optional_input("results/{trace}/outages.parquet"),
    output:
        error_codes=table("results/{trace}/tables/error_codes.csv", "Causes"),
        error_summary=table("results/{trace}/tables/error_summary.csv", "Causes"),
        error_rates_by_month=table("results/{trace}/tables/error_rates_by_month.csv", "Causes"),
        failures_by_component=table("results/{trace}/tables/failures_by_component.csv", "Causes"),
        error_nodes=table("results/{trace}/tables/error_nodes.csv", "Causes"),
        error_lead_times=table("results/{trace}/tables/error_lead_times.csv", "Causes"),
        error_attributions="results/{trace}/error_attributions.parquet",
    log:
        "logs/{trace}/judge_node_errors.log",
    benchmark:
        "benchmarks/{trace}/judge_node_errors.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("judge_node_errors"),
    params:
        **analysis_params("judge_node_errors"),
    script:
        "../../scripts/compute.py"


rule estimate_hazards:
    """Which factors are associated with failure, and how and when do units end?"""
    input:
        unpack(get_size_unit),
        durations="results/{trace}/durations.parquet",
    output:
        cumulative_incidence=table("results/{trace}/tables/cumulative_incidence.csv", "Factors"),
        incidence_at=table("results/{trace}/tables/incidence_at.csv", "Factors"),
        logrank=table("results/{trace}/tables/logrank.csv", "Factors"),
        cox=table("results/{trace}/tables/cox.csv", "Factors"),
        cox_summary=table("results/{trace}/tables/cox_summary.csv", "Factors"),
        survival_summary_delayed_entry=table("results/{trace}/tables/survival_summary_delayed_entry.csv", "Factors"),
        mttf_delayed_entry=table("results/{trace}/tables/mttf_delayed_entry.csv", "Factors"),
    log:
        "logs/{trace}/estimate_hazards.log",
    benchmark:
        "benchmarks/{trace}/estimate_hazards.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("estimate_hazards"),
    params:
        **analysis_params("estimate_hazards"),
    script:
        "../../scripts/compute.py"


rule correlate:
    """Which features are associated with run time and failure?"""
    input:
        jobs="results/{trace}/jobs.parquet",
    output:
        failure_share=table("results/{trace}/tables/failure_share.csv", "Factors"),
        runtime_by_group=table("results/{trace}/tables/runtime_by_group.csv", "Factors"),
        correlations=table("results/{trace}/tables/correlations.csv", "Factors"),
    log:
        "logs/{trace}/correlate.log",
    benchmark:
        "benchmarks/{trace}/correlate.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("correlate"),
    params:
        **analysis_params("correlate"),
    script:
        "../../scripts/compute.py"


rule annual_failure_rate:
    """How many of a hundred drives of each model fail in a year?"""
    input:
        durations="results/{trace}/durations.parquet",
    output:
        afr=table("results/{trace}/tables/afr.csv", "Time to failure"),
    log:
        "logs/{trace}/annual_failure_rate.log",
    benchmark:
        "benchmarks/{trace}/annual_failure_rate.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("annual_failure_rate"),
    params:
        **analysis_params("annual_failure_rate"),
    script:
        "../../scripts/compute.py"


rule fit_mttf:
    """How long until a failure, and what is the mean time to failure?"""
    input:
        unpack(get_size_unit),
        durations="results/{trace}/durations.parquet",
        jobs=optional_input("results/{trace}/jobs.parquet"),
    output:
        survival=table("results/{trace}/tables/survival.csv", "Time to failure"),
        survival_at=table("results/{trace}/tables/survival_at.csv", "Time to failure"),
        survival_summary=table("results/{trace}/tables/survival_summary.csv", "Time to failure"),
        survival_steps=table("results/{trace}/tables/survival_steps.csv", "Time to failure"),
        mttf=table("results/{trace}/tables/mttf.csv", "Time to failure"),
        failures_without_end=table("results/{trace}/tables/failures_without_end.csv", "Time to failure"),
        lifetime_models=table("results/{trace}/tables/lifetime_models.csv", "Time to failure"),
        durations_summary=table("results/{trace}/tables/durations_summary.csv", "Time to failure"),
        far_groups=table("results/{trace}/tables/far_groups.csv", "Time to failure"),
        survival_curves="results/{trace}/tables/survival.parquet",
    log:
        "logs/{trace}/fit_mttf.log",
    benchmark:
        "benchmarks/{trace}/fit_mttf.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("fit_mttf"),
    params:
        **analysis_params("fit_mttf"),
    script:
        "../../scripts/compute.py"


rule judge_lifetimes:
    """Does the hazard change with age, and where does a single MTTF mislead?"""
    input:
        unpack(get_size_unit),
        survival_curves="results/{trace}/tables/survival.parquet",
        lifetime_models="results/{trace}/tables/lifetime_models.csv",
        durations="results/{trace}/durations.parquet",
    output:
        lifetime_verdict=table("results/{trace}/tables/lifetime_verdict.csv", "Time to failure"),
        lifetime_verdicts=table("results/{trace}/tables/lifetime_verdicts.csv", "Time to failure"),
    log:
        "logs/{trace}/judge_lifetimes.log",
    benchmark:
        "benchmarks/{trace}/judge_lifetimes.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("judge_lifetimes"),
    params:
        **analysis_params("judge_lifetimes"),
    script:
        "../../scripts/compute.py"


rule measure_sizes:
    """What is the mean time to failure at every job size, and the failure rate of a node?"""
    input:
        unpack(get_size_unit),
        durations_infra="results/{trace}/durations_infra.parquet",
        nodes=optional_input("results/{trace}/nodes.parquet"),
    output:
        mttf_by_gpus=table("results/{trace}/tables/mttf_by_gpus.csv", "Scaling with job size"),
        node_failure_rate=table("results/{trace}/tables/node_failure_rate.csv", "Scaling with job size"),
        size_law=table("results/{trace}/tables/size_law.csv", "Scaling with job size"),
        survival_summary_infra=table("results/{trace}/tables/survival_summary_infra.csv", "Scaling with job size"),
        mttf_infra=table("results/{trace}/tables/mttf_infra.csv", "Scaling with job size"),
    log:
        "logs/{trace}/measure_sizes.log",
    benchmark:
        "benchmarks/{trace}/measure_sizes.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_sizes"),
    params:
        **analysis_params("measure_sizes"),
    script:
        "../../scripts/compute.py"


rule measure_losses:
    """What did failures cost, who had them, how do they repeat, and what would have saved some of it?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        reasons=optional_input("results/{trace}/reasons.parquet"),
        placements=optional_input("results/{trace}/placements.parquet"),
    output:
        lost_work=table("results/{trace}/tables/lost_work.csv", "GPU time in failures"),
        lost_work_all=table("results/{trace}/tables/lost_work_all.csv", "GPU time in failures"),
        lost_work_by_month=table("results/{trace}/tables/lost_work_by_month.csv", "GPU time in failures"),
        failures_by_owner=table("results/{trace}/tables/failures_by_owner.csv", "GPU time in failures"),
        failure_concentration=table("results/{trace}/tables/failure_concentration.csv", "GPU time in failures"),
        repeats=table("results/{trace}/tables/repeats.csv", "GPU time in failures"),
        what_if=table("results/{trace}/tables/what_if.csv", "GPU time in failures"),
        locality=table("results/{trace}/tables/locality.csv", "GPU time in failures"),
    log:
        "logs/{trace}/measure_losses.log",
    benchmark:
        "benchmarks/{trace}/measure_losses.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_losses"),
    params:
        **analysis_params("measure_losses"),
    script:
        "../../scripts/compute.py"


rule account_gpu_hours:
    """Where did every GPU hour of the trace go?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        placements=optional_input("results/{trace}/placements.parquet"),
        nodes=optional_input("results/{trace}/nodes.parquet"),
        outages=optional_input("results/{trace}/outages.parquet"),
        exposure=optional_input("results/{trace}/exposure.parquet"),
        occupancy_basis=optional_input("results/{trace}/tables/occupancy_basis.csv"),
    output:
        ledger=table("results/{trace}/tables/ledger.csv", "GPU time in failures"),
        ledger_summary=table("results/{trace}/tables/ledger_summary.csv", "GPU time in failures"),
    log:
        "logs/{trace}/account_gpu_hours.log",
    benchmark:
        "benchmarks/{trace}/account_gpu_hours.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("account_gpu_hours"),
    params:
        **analysis_params("account_gpu_hours"),
    script:
        "../../scripts/compute.py"


rule measure_training_runs:
    """Where does the time of training runs go, and what does an interruption cost?"""
    input:
        training_events="results/{trace}/training_events.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        jobs=optional_input("results/{trace}/jobs.parquet"),
        durations_infra=optional_input("results/{trace}/durations_infra.parquet"),
        outages=optional_input("results/{trace}/outages.parquet"),
    output:
        training_time=table("results/{trace}/tables/training_time.csv", "Large runs, planner"),
        training_runs=table("results/{trace}/tables/training_runs.csv", "Large runs, planner"),
        training_interruptions=table("results/{trace}/tables/training_interruptions.csv", "Large runs, planner"),
        training_causes=table("results/{trace}/tables/training_causes.csv", "Large runs, planner"),
        training_slowdowns=table("results/{trace}/tables/training_slowdowns.csv", "Large runs, planner"),
        training_unjoined=table("results/{trace}/tables/training_unjoined.csv", "Large runs, planner"),
        training_summary=table("results/{trace}/tables/training_summary.csv", "Large runs, planner"),
    log:
        "logs/{trace}/measure_training_runs.log",
    benchmark:
        "benchmarks/{trace}/measure_training_runs.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_training_runs"),
    params:
        **analysis_params("measure_training_runs"),
    script:
        "../../scripts/compute.py"


rule plan_ettr:
    """What effective training time ratio, and how many interruptions, can a job run of each size expect?"""
    input:
        unpack(get_size_unit),
        durations_infra="results/{trace}/durations_infra.parquet",
        node_failure_rate="results/{trace}/tables/node_failure_rate.csv",
        mttf_by_gpus="results/{trace}/tables/mttf_by_gpus.csv",
        training_summary=optional_input("results/{trace}/tables/training_summary.csv"),
    output:
        ettr=table("results/{trace}/tables/ettr.csv", "Large runs, planner"),
        ettr_outlook=table("results/{trace}/tables/ettr_outlook.csv", "Large runs, planner"),
        mitigations=table("results/{trace}/tables/mitigations.csv", "Large runs, planner"),
        target_run=table("results/{trace}/tables/target_run.csv", "Large runs, planner"),
        ettr_assumptions=table("results/{trace}/tables/ettr_assumptions.csv", "Large runs, planner"),
        ettr_contour=table("results/{trace}/tables/ettr_contour.csv", "Large runs, planner"),
    log:
        "logs/{trace}/plan_ettr.log",
    benchmark:
        "benchmarks/{trace}/plan_ettr.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("plan_ettr"),
    params:
        **analysis_params("plan_ettr"),
    script:
        "../../scripts/compute.py"


rule measure_ettr:
    """How much time of job runs was productive, and how much does the model expect?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        node_failure_rate="results/{trace}/tables/node_failure_rate.csv",
        mttf_by_gpus="results/{trace}/tables/mttf_by_gpus.csv",
    output:
        ettr_measured=table("results/{trace}/tables/ettr_measured.csv", "Large runs, planner"),
        ettr_measured_all=table("results/{trace}/tables/ettr_measured_all.csv", "Large runs, planner"),
        ettr_measured_target=table("results/{trace}/tables/ettr_measured_target.csv", "Large runs, planner"),
    log:
        "logs/{trace}/measure_ettr.log",
    benchmark:
        "benchmarks/{trace}/measure_ettr.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_ettr"),
    params:
        **analysis_params("measure_ettr"),
    script:
        "../../scripts/compute.py"


rule track_failure_rate:
    """How does the failure rate of nodes change over time, and by what cause?"""
    input:
        unpack(get_size_unit),
        durations_infra="results/{trace}/durations_infra.parquet",
        node_failure_rate="results/{trace}/tables/node_failure_rate.csv",
        reasons=optional_input("results/{trace}/reasons.parquet"),
    output:
        failure_rate_over_time=table("results/{trace}/tables/failure_rate_over_time.csv", "Nodes and periods"),
        failure_rate_windows=table("results/{trace}/tables/failure_rate_windows.csv", "Nodes and periods"),
    log:
        "logs/{trace}/track_failure_rate.log",
    benchmark:
        "benchmarks/{trace}/track_failure_rate.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("track_failure_rate"),
    params:
        **analysis_params("track_failure_rate"),
    script:
        "../../scripts/compute.py"


rule find_lemon_nodes:
    """Which nodes fail more than their use explains?"""
    input:
        durations_infra="results/{trace}/durations_infra.parquet",
        placements=optional_input("results/{trace}/placements.parquet"),
    output:
        lemon_nodes=table("results/{trace}/tables/lemon_nodes.csv", "Nodes and periods"),
        lemon_summary=table("results/{trace}/tables/lemon_summary.csv", "Nodes and periods"),
        lemon_effect=table("results/{trace}/tables/lemon_effect.csv", "Nodes and periods"),
    log:
        "logs/{trace}/find_lemon_nodes.log",
    benchmark:
        "benchmarks/{trace}/find_lemon_nodes.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("find_lemon_nodes"),
    params:
        **analysis_params("find_lemon_nodes"),
    script:
        "../../scripts/compute.py"


rule measure_availability:
    """How often are nodes down, for how long, why, and what share of the time are they up?"""
    input:
        outages="results/{trace}/outages.parquet",
        outage_records="results/{trace}/outage_records.parquet",
        exposure=optional_input("results/{trace}/exposure.parquet"),
    output:
        outage_causes=table("results/{trace}/tables/outage_causes.csv", "Node outages"),
        availability=table("results/{trace}/tables/availability.csv", "Node outages"),
        outages_summary=table("results/{trace}/tables/outages_summary.csv", "Node outages"),
        outage_free=table("results/{trace}/tables/outage_free.csv", "Node outages"),
    log:
        "logs/{trace}/measure_availability.log",
    benchmark:
        "benchmarks/{trace}/measure_availability.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_availability"),
    params:
        **analysis_params("measure_availability"),
    script:
        "../../scripts/compute.py"


rule size_spares:
    """How many units are down at once, and how many spares does a run of N nodes need?"""
    input:
        unpack(get_size_unit),
        outages="results/{trace}/outages.parquet",
        exposure="results/{trace}/exposure.parquet",
        node_failure_rate=optional_input("results/{trace}/tables/node_failure_rate.csv"),
    output:
        units_down=table("results/{trace}/tables/units_down.csv", "Node outages"),
        spares=table("results/{trace}/tables/spares.csv", "Node outages"),
        capacity=table("results/{trace}/tables/capacity.csv", "Node outages"),
        spares_needed=table("results/{trace}/tables/spares_needed.csv", "Node outages"),
    log:
        "logs/{trace}/size_spares.log",
    benchmark:
        "benchmarks/{trace}/size_spares.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("size_spares"),
    params:
        **analysis_params("size_spares"),
    script:
        "../../scripts/compute.py"


rule track_outages:
    """Do faults become more or less frequent?"""
    input:
        outages="results/{trace}/outages.parquet",
        outage_records="results/{trace}/outage_records.parquet",
        exposure="results/{trace}/exposure.parquet",
    output:
        growth=table("results/{trace}/tables/growth.csv", "Node outages"),
        mcf=table("results/{trace}/tables/mcf.csv", "Node outages"),
    log:
        "logs/{trace}/track_outages.log",
    benchmark:
        "benchmarks/{trace}/track_outages.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("track_outages"),
    params:
        **analysis_params("track_outages"),
    script:
        "../../scripts/compute.py"


rule find_bursts:
    """Do units fail together, and do they fail again soon after a repair?"""
    input:
        outages="results/{trace}/outages.parquet",
        exposure=optional_input("results/{trace}/exposure.parquet"),
    output:
        bursts=table("results/{trace}/tables/bursts.csv", "Node outages"),
        again_after_repair=table("results/{trace}/tables/again_after_repair.csv", "Node outages"),
        outage_counts=table("results/{trace}/tables/outage_counts.csv", "Node outages"),
    log:
        "logs/{trace}/find_bursts.log",
    benchmark:
        "benchmarks/{trace}/find_bursts.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("find_bursts"),
    params:
        **analysis_params("find_bursts"),
    script:
        "../../scripts/compute.py"


rule match_outages:
    """Do jobs fail when their nodes go down, and what happens to jobs in an outage?"""
    input:
        outages="results/{trace}/outages.parquet",
        exposure="results/{trace}/exposure.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        placements="results/{trace}/placements.parquet",
    output:
        outage_matches=table("results/{trace}/tables/outage_matches.csv", "Node outages"),
    log:
        "logs/{trace}/match_outages.log",
    benchmark:
        "benchmarks/{trace}/match_outages.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("match_outages"),
    params:
        **analysis_params("match_outages"),
    script:
        "../../scripts/compute.py"


rule list_drains:
    """Which nodes should be drained, on what evidence, what would that save, and were such lists right?"""
    input:
        outages=optional_input("results/{trace}/outages.parquet"),
        exposure=optional_input("results/{trace}/exposure.parquet"),
        nodes=optional_input("results/{trace}/nodes.parquet"),
        durations_infra=optional_input("results/{trace}/durations_infra.parquet"),
        lemon_nodes=optional_input("results/{trace}/tables/lemon_nodes.csv"),
        occupancy_basis=optional_input("results/{trace}/tables/occupancy_basis.csv"),
    output:
        drain_list=table("results/{trace}/tables/drain_list.csv", "Node outages"),
        drain_summary=table("results/{trace}/tables/drain_summary.csv", "Node outages"),
        drain_backtest=table("results/{trace}/tables/drain_backtest.csv", "Node outages"),
        drains=directory("results/{trace}/drains"),
    log:
        "logs/{trace}/list_drains.log",
    benchmark:
        "benchmarks/{trace}/list_drains.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("list_drains"),
    params:
        **analysis_params("list_drains"),
    script:
        "../../scripts/compute.py"


rule describe_attempts:
    """How long do attempts wait, how often are jobs tried, and how long does an attempt run until it fails?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        attempts="results/{trace}/attempts.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        outages=optional_input("results/{trace}/outages.parquet"),
    output:
        delays=table("results/{trace}/tables/delays.csv", "Queue and utilisation"),
        delay_by_nodes=table("results/{trace}/tables/delay_by_nodes.csv", "Queue and utilisation"),
        out_of_order=table("results/{trace}/tables/out_of_order.csv", "Queue and utilisation"),
        retries=table("results/{trace}/tables/retries.csv", "Queue and utilisation"),
        runtime_to_failure=table("results/{trace}/tables/runtime_to_failure.csv", "Queue and utilisation"),
        failed_attempts=table("results/{trace}/tables/failed_attempts.csv", "Queue and utilisation"),
        outcomes_window=table("results/{trace}/tables/outcomes_window.csv", "Queue and utilisation"),
        restarts=table("results/{trace}/tables/restarts.csv", "Queue and utilisation"),
        retry_success=table("results/{trace}/tables/retry_success.csv", "Queue and utilisation"),
    log:
        "logs/{trace}/describe_attempts.log",
    benchmark:
        "benchmarks/{trace}/describe_attempts.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("describe_attempts"),
    params:
        **analysis_params("describe_attempts"),
    script:
        "../../scripts/compute.py"


rule reconstruct_occupancy:
    """How full was the cluster, and does that explain the waits?"""
    input:
        placements="results/{trace}/placements.parquet",
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
        attempts=optional_input("results/{trace}/attempts.parquet"),
    output:
        occupancy=table("results/{trace}/tables/occupancy.csv", "Queue and utilisation"),
        occupancy_basis=table("results/{trace}/tables/occupancy_basis.csv", "Queue and utilisation"),
        fragmentation=table("results/{trace}/tables/fragmentation.csv", "Queue and utilisation"),
        load_over_time=table("results/{trace}/tables/load_over_time.csv", "Queue and utilisation"),
        server_sharing=table("results/{trace}/tables/server_sharing.csv", "Queue and utilisation"),
        delay_causes=table("results/{trace}/tables/delay_causes.csv", "Queue and utilisation"),
    log:
        "logs/{trace}/reconstruct_occupancy.log",
    benchmark:
        "benchmarks/{trace}/reconstruct_occupancy.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("reconstruct_occupancy"),
    params:
        **analysis_params("reconstruct_occupancy"),
    script:
        "../../scripts/compute.py"


rule describe_workload:
    """What do users request and submit, and how long do jobs wait and run?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        nodes="results/{trace}/nodes.parquet",
        raw=optional_input("results/{trace}/raw"),
    output:
        percentiles=table("results/{trace}/tables/percentiles.csv", "Queue and utilisation"),
        gpu_requests=table("results/{trace}/tables/gpu_requests.csv", "Queue and utilisation"),
        request_use=table("results/{trace}/tables/request_use.csv", "Queue and utilisation"),
        recurrence=table("results/{trace}/tables/recurrence.csv", "Queue and utilisation"),
        submissions=table("results/{trace}/tables/submissions.csv", "Queue and utilisation"),
        roles=table("results/{trace}/tables/roles.csv", "Queue and utilisation"),
        activity=table("results/{trace}/tables/activity.csv", "Queue and utilisation"),
        gangs=table("results/{trace}/tables/gangs.csv", "Queue and utilisation"),
        request_percentiles=table("results/{trace}/tables/request_percentiles.csv", "Queue and utilisation"),
        wait_share=table("results/{trace}/tables/wait_share.csv", "Queue and utilisation"),
        machines=table("results/{trace}/tables/machines.csv", "Queue and utilisation"),
        job_status=table("results/{trace}/tables/job_status.csv", "Queue and utilisation"),
        machine_load=table("results/{trace}/tables/machine_load.csv", "Queue and utilisation"),
    log:
        "logs/{trace}/describe_workload.log",
    benchmark:
        "benchmarks/{trace}/describe_workload.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("describe_workload"),
    params:
        **analysis_params("describe_workload"),
    script:
        "../../scripts/compute.py"


rule measure_use:
    """How busy were GPUs and hosts?"""
    input:
        raw="results/{trace}/raw",
    output:
        gpu_use=table("results/{trace}/tables/gpu_use.csv", "Queue and utilisation"),
        host_use=table("results/{trace}/tables/host_use.csv", "Queue and utilisation"),
    log:
        "logs/{trace}/measure_use.log",
    benchmark:
        "benchmarks/{trace}/measure_use.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_use"),
    params:
        **analysis_params("measure_use"),
    script:
        "../../scripts/compute.py"


rule suggest_requests:
    """What should the next request be, after jobs that ended at their time limit or out of memory?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
    output:
        suggested_time_limits=table("results/{trace}/tables/suggested_time_limits.csv", "Queue and utilisation"),
        suggested_memory=table("results/{trace}/tables/suggested_memory.csv", "Queue and utilisation"),
        limit_ends=table("results/{trace}/tables/limit_ends.csv", "Queue and utilisation"),
    log:
        "logs/{trace}/suggest_requests.log",
    benchmark:
        "benchmarks/{trace}/suggest_requests.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("suggest_requests"),
    params:
        **analysis_params("suggest_requests"),
    script:
        "../../scripts/compute.py"


rule predict_failure:
    """Can failure be predicted, when, and what is that worth?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
    output:
        risk_verdict=table("results/{trace}/tables/risk_verdict.csv", "Failure risk"),
        risk_evaluation=table("results/{trace}/tables/risk_evaluation.csv", "Failure risk"),
        risk_calibration=table("results/{trace}/tables/risk_calibration.csv", "Failure risk"),
        risk_coefficients=table("results/{trace}/tables/risk_coefficients.csv", "Failure risk"),
        risk_importance=table("results/{trace}/tables/risk_importance.csv", "Failure risk"),
        risk_dependence=table("results/{trace}/tables/risk_dependence.csv", "Failure risk"),
        risk_decisions=table("results/{trace}/tables/risk_decisions.csv", "Failure risk"),
        risk_extrapolation=table("results/{trace}/tables/risk_extrapolation.csv", "Failure risk"),
        risk_features=table("results/{trace}/tables/risk_features.csv", "Failure risk"),
        risk_jobs=table("results/{trace}/tables/risk_jobs.csv", "Failure risk"),
    log:
        "logs/{trace}/predict_failure.log",
    benchmark:
        "benchmarks/{trace}/predict_failure.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("predict_failure"),
    params:
        **analysis_params("predict_failure"),
    script:
        "../../scripts/compute.py"


rule train_model:
    """Is a model that is retrained window by window still good enough to use?"""
    input:
        jobs="results/{trace}/jobs.parquet",
    output:
        model_lineage=table("results/{trace}/tables/model_lineage.csv", "Failure risk"),
        models_summary=table("results/{trace}/tables/models_summary.csv", "Failure risk"),
        model_cache=update("results/{trace}/model_cache.parquet"),
        models=directory("results/{trace}/models"),
    log:
        "logs/{trace}/train_model.log",
    benchmark:
        "benchmarks/{trace}/train_model.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("train_model"),
    params:
        **analysis_params("train_model"),
    script:
        "../../scripts/compute.py"


rule summarise_results:
    """What do the results add up to?"""
    input:
        unpack(get_size_unit),
        row_account=optional_input("results/{trace}/quality/row_account.csv"),
        anomalies=optional_input("results/{trace}/quality/anomalies.csv"),
        statistics=optional_input("results/{trace}/quality/statistics.csv"),
        jobs_summary=optional_input("results/{trace}/tables/jobs_summary.csv"),
        outcomes=optional_input("results/{trace}/tables/outcomes.csv"),
        ended_jobs=optional_input("results/{trace}/tables/ended_jobs.csv"),
        states=optional_input("results/{trace}/tables/states.csv"),
        mttf=optional_input("results/{trace}/tables/mttf.csv"),
        mttf_delayed_entry=optional_input("results/{trace}/tables/mttf_delayed_entry.csv"),
        lost_work=optional_input("results/{trace}/tables/lost_work.csv"),
        what_if=optional_input("results/{trace}/tables/what_if.csv"),
        lemon_summary=optional_input("results/{trace}/tables/lemon_summary.csv"),
        strata=optional_input("results/{trace}/tables/strata.csv"),
    output:
        quality_summary=table("results/{trace}/tables/quality_summary.csv", "Data quality"),
        mttf_range=table("results/{trace}/tables/mttf_range.csv", "Data quality"),
        failed_time=table("results/{trace}/tables/failed_time.csv", "Data quality"),
        actions=table("results/{trace}/tables/actions.csv", "Data quality"),
    log:
        "logs/{trace}/summarise_results.log",
    benchmark:
        "benchmarks/{trace}/summarise_results.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("summarise_results"),
    params:
        **analysis_params("summarise_results"),
    script:
        "../../scripts/compute.py"


rule compare_parts:
    """What changed since the last part of the records, and what does the next week bring?"""
    input:
        unpack(get_size_unit),
        jobs="results/{trace}/jobs.parquet",
        durations_infra="results/{trace}/durations_infra.parquet",
        node_failure_rate="results/{trace}/tables/node_failure_rate.csv",
        attempts=optional_input("results/{trace}/attempts.parquet"),
        placements=optional_input("results/{trace}/placements.parquet"),
        reasons=optional_input("results/{trace}/reasons.parquet"),
        lemon_nodes=optional_input("results/{trace}/tables/lemon_nodes.csv"),
        mttf_by_gpus=optional_input("results/{trace}/tables/mttf_by_gpus.csv"),
        ettr_assumptions=optional_input("results/{trace}/tables/ettr_assumptions.csv"),
    output:
        changes=table("results/{trace}/tables/changes.csv", "Data quality"),
        changes_summary=table("results/{trace}/tables/changes_summary.csv", "Data quality"),
        new_failure_words=table("results/{trace}/tables/new_failure_words.csv", "Data quality"),
        new_suspect_nodes=table("results/{trace}/tables/new_suspect_nodes.csv", "Data quality"),
        gone_suspect_nodes=table("results/{trace}/tables/gone_suspect_nodes.csv", "Data quality"),
        week_forecast=table("results/{trace}/tables/week_forecast.csv", "Data quality"),
    log:
        "logs/{trace}/compare_parts.log",
    benchmark:
        "benchmarks/{trace}/compare_parts.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("compare_parts"),
    params:
        **analysis_params("compare_parts"),
    script:
        "../../scripts/compute.py"


rule measure_drift:
    """What changed between windows of the submission, or against another trace?"""
    input:
        jobs="results/{trace}/jobs.parquet",
        jobs_against=registry_file("jobs_against"),
    output:
        drift=table("results/{trace}/tables/drift.csv", "Data quality"),
        drift_summary=table("results/{trace}/tables/drift_summary.csv", "Data quality"),
    log:
        "logs/{trace}/measure_drift.log",
    benchmark:
        "benchmarks/{trace}/measure_drift.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_drift"),
    params:
        **analysis_params("measure_drift"),
    script:
        "../../scripts/compute.py"


rule repeat_study:
    """What do the published analyses give here, and the same questions at job level, with censoring?"""
    input:
        jobs="results/{trace}/jobs.parquet",
        correlations="results/{trace}/tables/correlations.csv",
        runtime_by_group="results/{trace}/tables/runtime_by_group.csv",
        mttf="results/{trace}/tables/mttf.csv",
    output:
        study1=table("results/{trace}/tables/study1.csv", "Published studies"),
        study1_summary=table("results/{trace}/tables/study1_summary.csv", "Published studies"),
    log:
        "logs/{trace}/repeat_study.log",
    benchmark:
        "benchmarks/{trace}/repeat_study.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("repeat_study"),
    params:
        **analysis_params("repeat_study"),
    script:
        "../../scripts/compute.py"


rule measure_epochs:
    """By which of its epochs did a job reach its lowest loss?"""
    input:
        losses=registry_file("losses"),
        jobs="results/{trace}/jobs.parquet",
    output:
        epochs=table("results/{trace}/tables/epochs.csv", "Published studies"),
        epochs_summary=table("results/{trace}/tables/epochs_summary.csv", "Published studies"),
    log:
        "logs/{trace}/measure_epochs.log",
    benchmark:
        "benchmarks/{trace}/measure_epochs.tsv"
    group:
        GROUP["analyses"]
    conda:
        ENVIRONMENT
    resources:
        **request_resources("measure_epochs"),
    params:
        **analysis_params("measure_epochs"),
    script:
        "../../scripts/compute.py"
