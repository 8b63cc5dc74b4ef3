# Adversarially constructed evaluation sets: build them, and measure whether they are fair.
#
# snakemake --cores 8 --resources gpu=4                            the study of config/config.yaml
# snakemake --cores 2 --configfile config/demo.yaml                the embedded default
# snakemake results/demo/figures/NAME.pdf --cores 2 --configfile config/demo.yaml     one figure
# snakemake fetch --cores 2                                        data and models only, before going offline
# snakemake --workflow-profile profiles/slurm                      on a SLURM cluster
# snakemake clean_checkpoints --cores 1                            remove checkpoints that nothing needs any more
from snakemake.utils import min_version

min_version("9.27")

if not workflow.overwrite_configfiles:

    configfile: "config/config.yaml"


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/ensembles.smk"
include: "workflow/rules/cluster.smk"
include: "workflow/rules/collections.smk"
include: "workflow/rules/download.smk"
include: "workflow/rules/finetune.smk"
include: "workflow/rules/embed.smk"
include: "workflow/rules/filter.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/collect.smk"
include: "workflow/rules/score.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/export.smk"
include: "workflow/rules/cost.smk"


localrules:
    all,
    fetch,
    fetch_dataset,
    fetch_model,
    fetch_predictions,
    clean_checkpoints,


rule all:
    default_target: True
    input:
        final_files(),
    message:
        "Everything of run {config[run]} is made."
