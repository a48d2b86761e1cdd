"""Scripts with one planted fault each, for `benchmarks.planted_faults`."""
