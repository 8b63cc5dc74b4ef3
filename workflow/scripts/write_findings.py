"""Write the findings of every data set as one page.

| output | content |
|---|---|
| first | Markdown table of the findings, a section per data set |
"""

from advsets.job import step


def main() -> None:
    with step(snakemake.log[0], snakemake.threads, snakemake.output):
        from advsets.evaluation.findings import findings_markdown
        from advsets.io import read_table, write_text

        write_text(snakemake.output[0], findings_markdown([read_table(path, "findings") for path in snakemake.input]))


main()
