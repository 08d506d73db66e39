"""The modelled kernel: what the agent's system calls do while it runs under the machine. One file a subject."""

# Each of these puts its calls into the table.
from harness.kernel import files, memory_map, polling, process, signals, sockets, times

__all__ = ["files", "memory_map", "polling", "process", "signals", "sockets", "times"]
