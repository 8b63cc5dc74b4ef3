"""Make the questions tables of one data set.

| output | content |
|---|---|
| train, evaluation | one row per question (table `questions`) |
| mismatches | gold answers that are not where the source says (table `answer_mismatches`) |
| dropped | questions dropped or counted, by reason (table `dropped`) |
"""

from pathlib import Path

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.datasets.questions.prepare import prepare_questions
        from advsets.registry import DatasetRow

        prepare_questions(
            DatasetRow.from_config(snakemake.wildcards.dataset, snakemake.params.row),
            Path(snakemake.input.record).parent,
            Path(snakemake.output.train).parent,
            seed=snakemake.params.seed,
            **snakemake.params.split,
        )


main()
