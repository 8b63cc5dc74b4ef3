# Jobs that hold devices, to see whom the scheduler gives which. Gives: one note per job.
import sys

HOLD = f"{workflow.basedir}/hold_device.py"
WANTED = [2, 1, 1, 1, 2, 1, 1]


rule all:
    input:
        [f"held/{number}.json" for number in range(len(WANTED))],


rule hold:
    output:
        "held/{number}.json",
    resources:
        gpu=lambda wildcards: WANTED[int(wildcards.number)],
        mem_mb=200,
        runtime=2,
        nodes=1,
        slurm_partition="gpu",
    shell:
        f"{sys.executable} {HOLD} {{resources.gpu}} {{output}}"
