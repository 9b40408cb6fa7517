"""Other names of flags: those of the programs that Berth grew from, in one table."""

ALIASES: dict[str, tuple[str, ...]] = {
    "seq_len": ("len", "jobs_per_episode"),
    "window": ("max_queue_size", "rl_window_size"),
    "score_type": ("job_score_type",),
    "exp_name": ("log_dir",),
    "resume_from": ("resume",),
    "clip_ratio": ("clip_coef",),
    "max_grad_norm": ("grad_clip",),
    "backfil": ("backfill",),
    "windows": ("iter",),
}
"""The name of a setting, and what else its flag may be called."""
