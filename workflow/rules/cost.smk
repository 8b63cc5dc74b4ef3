# Needs: the jobs that are planned. Gives: what those still to run will cost, told before the first
# one starts and at the end of a dry run.
import atexit
import contextlib
import sys


def planned_jobs():
    """Every job of the plan, as the estimate sees it, in the order of the run."""
    from advsets.cost.job import Job

    to_run = set(workflow.dag.needrun_jobs(exclude_finished=False))
    return [
        Job(
            job.rule.name,
            dict(job.wildcards_dict),
            str(job.benchmark) if job.benchmark else None,
            job.resources.get("gpu", 0),
            job.threads,
            job in to_run,
        )
        for level in workflow.dag.toposorted()
        for job in sorted(level, key=str)
        if not job.rule.norun
    ]


def tell_cost(stream):
    """Print what is still to run, and what it will cost."""
    from advsets.cost.estimate import estimate
    from advsets.cost.report import cost_lines

    jobs = planned_jobs()
    if any(job.to_run for job in jobs):
        with contextlib.suppress(BrokenPipeError):
            print(*cost_lines(config, estimate(config, jobs)), sep="\n", file=stream)
            stream.flush()


def tell_cost_of_dry_run():
    """Snakemake calls `onstart` before jobs only, not in a dry run."""
    if workflow.dag is not None and workflow.dryrun:
        tell_cost(sys.stdout)


atexit.register(tell_cost_of_dry_run)


onstart:
    tell_cost(sys.stderr)
