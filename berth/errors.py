"""What can go wrong by the user's hand."""


class BerthError(Exception):
    """A mistake that the user can mend; told in one message: what came, what was wanted, where."""


class TraceError(BerthError):
    """A trace file that cannot be read."""


class ClusterError(BerthError):
    """A cluster that is not known, or described wrongly."""


class ConfigError(BerthError):
    """Options that are unknown, contradict each other, or need something that is not there."""


class NothingFits(ConfigError):
    """A workload of which no job can ever run on its cluster."""


class SimulationError(BerthError):
    """A simulation that was asked for something impossible."""


class SchedulerError(BerthError):
    """A cluster's own scheduler that cannot be read, or does not do what it was asked."""


class SnapshotError(BerthError):
    """A moment of a cluster that is told wrongly, or not as a policy needs it."""
