# Needs: predictions, retained masks, examples. Gives: the tables of results/<run>/evaluation,
# by joins alone; no model is run here.
EVALUATION = f"{RUN}/evaluation/{{dataset}}"


rule evaluate_models:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        more_annotators=f"{RUN}/data/{{dataset}}/more_annotators.parquet",
        retained=lambda wildcards: filtered_of(wildcards.dataset),
        predictions=lambda wildcards: predictions_of(wildcards.dataset),
    output:
        accuracy=f"{EVALUATION}/accuracy.parquet",
        ranks=f"{EVALUATION}/ranks.parquet",
        rank_stability=f"{EVALUATION}/rank_stability.parquet",
        penalty=f"{EVALUATION}/penalty.parquet",
        penalty_cells=f"{EVALUATION}/penalty_cells.parquet",
        accuracy_by_agreement=f"{EVALUATION}/accuracy_by_agreement.parquet",
        soft_scores=f"{EVALUATION}/soft_scores.parquet",
        findings=f"{EVALUATION}/findings.parquet",
    log:
        f"{RUN}/logs/evaluate_models/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_models/{{dataset}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=evaluation_params,
        code=code_version("evaluation", "stats"),
    message:
        "Scoring every evaluated model on every subset of {wildcards.dataset}"
    script:
        "../scripts/evaluate.py"


rule evaluate_alternatives:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=lambda wildcards: filtered_of(wildcards.dataset),
        round_scores=lambda wildcards: filtered_of(wildcards.dataset, "round_scores"),
        predictions=lambda wildcards: predictions_of(wildcards.dataset),
    output:
        agreement_matched=f"{EVALUATION}/agreement_matched.parquet",
        agreement_matched_models=f"{EVALUATION}/agreement_matched_models.parquet",
        aggregate_ranks=f"{EVALUATION}/aggregate_ranks.parquet",
        aggregate_stability=f"{EVALUATION}/aggregate_stability.parquet",
        accuracy_by_predictability=f"{EVALUATION}/accuracy_by_predictability.parquet",
    log:
        f"{RUN}/logs/evaluate_alternatives/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_alternatives/{{dataset}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=evaluation_params,
        code=code_version("evaluation", "stats"),
    message:
        "Scoring every evaluated model on alternatives to the filtered subsets of {wildcards.dataset}"
    script:
        "../scripts/evaluate.py"


rule evaluate_ensembles:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=lambda wildcards: filtered_of(wildcards.dataset),
        ensembles=lambda wildcards: ensembles_of(wildcards.dataset),
        predictions=lambda wildcards: predictions_of(wildcards.dataset),
    output:
        ensembles=f"{EVALUATION}/ensembles.parquet",
    log:
        f"{RUN}/logs/evaluate_ensembles/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_ensembles/{{dataset}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=evaluation_params,
        ensemble_runs=runs_of(ENSEMBLES, "adversary"),
        described=ENSEMBLES,
        code=code_version("evaluation", "stats"),
    message:
        "Comparing ensembles with single adversaries on {wildcards.dataset}"
    script:
        "../scripts/evaluate_ensembles.py"


rule evaluate_sensitivity:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=lambda wildcards: filtered_of(wildcards.dataset),
        variants=lambda wildcards: variants_of(wildcards.dataset),
        predictions=lambda wildcards: predictions_of(wildcards.dataset),
    output:
        sensitivity=f"{EVALUATION}/sensitivity.parquet",
    log:
        f"{RUN}/logs/evaluate_sensitivity/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_sensitivity/{{dataset}}.tsv"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=evaluation_params,
        variants=list(VARIANTS),
        code=code_version("evaluation", "stats"),
    message:
        "Comparing filters of {wildcards.dataset} with other settings and seeds"
    script:
        "../scripts/evaluate_sensitivity.py"


rule evaluate_agreement:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=lambda wildcards: filtered_of(wildcards.dataset),
    output:
        agreement=f"{EVALUATION}/agreement.parquet",
        agreement_histogram=f"{EVALUATION}/agreement_histogram.parquet",
        label_balance=f"{EVALUATION}/label_balance.parquet",
    log:
        f"{RUN}/logs/evaluate_agreement/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_agreement/{{dataset}}.tsv"
    group:
        "sets"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=agreement_params,
        code=code_version("evaluation", "stats"),
    message:
        "Comparing annotator agreement of what {wildcards.dataset} keeps"
    script:
        "../scripts/evaluate.py"


rule evaluate_ensemble_agreement:
    input:
        examples=f"{RUN}/data/{{dataset}}/evaluation.parquet",
        retained=lambda wildcards: ensembles_of(wildcards.dataset),
    output:
        agreement=f"{EVALUATION}/ensembles/agreement.parquet",
    log:
        f"{RUN}/logs/evaluate_ensemble_agreement/{{dataset}}.log",
    benchmark:
        f"{RUN}/benchmarks/evaluate_ensemble_agreement/{{dataset}}.tsv"
    group:
        "sets"
    conda:
        ENV
    resources:
        **step_resources("evaluate"),
    params:
        study=ensemble_agreement_params,
        code=code_version("evaluation", "stats"),
    message:
        "Comparing annotator agreement of what ensembles keep of {wildcards.dataset}"
    script:
        "../scripts/evaluate.py"


rule write_findings:
    input:
        expand(f"{EVALUATION}/findings.parquet", dataset=DATASETS),
    output:
        report(
            f"{RUN}/evaluation/findings.md",
            caption="../report/findings_table.rst",
            category="Findings",
        ),
    log:
        f"{RUN}/logs/write_findings.log",
    benchmark:
        f"{RUN}/benchmarks/write_findings.tsv"
    group:
        "model_figures"
    conda:
        ENV
    resources:
        **step_resources("other"),
        together=1,
    params:
        code=code_version("evaluation/findings.py"),
    message:
        "Writing the findings of run {config[run]}"
    script:
        "../scripts/write_findings.py"
