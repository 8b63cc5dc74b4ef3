"""Remove checkpoints whose embeddings or predictions are made; says what it removed."""

from advsets.job import step


def main() -> None:
    params = snakemake.params
    with step(snakemake.log[0], snakemake.threads, [params.run + "/models"]):
        from advsets.cleaning import clean_checkpoints

        clean_checkpoints(params.run, params.embeddings, params.predictions, params.collected)


main()
