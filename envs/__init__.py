"""WHAT is scheduled: clusters, workloads, policies, metrics."""
