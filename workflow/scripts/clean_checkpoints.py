"""Remove checkpoints whose embeddings or predictions are made; says what it removed."""

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, [snakemake.params.run + "/models"]):
        from advsets.cleaning import clean_checkpoints

        clean_checkpoints(snakemake.params.run, snakemake.params.embeddings, snakemake.params.predictions)


main()
