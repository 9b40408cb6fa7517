"""IN: every trace format in, one Trace of columns out."""
