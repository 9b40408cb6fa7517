"""WHERE a job runs: GPUs on nodes, with no clock and no learning."""
