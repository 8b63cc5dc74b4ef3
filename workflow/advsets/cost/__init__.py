"""What a run will cost: jobs, GPU hours, CPU hours and disk, from measured rates or stated assumptions."""
