"""Run kernels in processes of their own.

The parent makes the data and judges what comes back. The runner process holds one kernel and one block of shared
memory, and only makes calls: it never has the expected results, the reference or a key.
"""

from hfreg.kernels.runner.arena import Arena, Block, MemoryFault
from hfreg.kernels.runner.client import Call, KernelRunner, Ran, Reported, RunOutcome, Stopped

__all__ = ["Arena", "Block", "Call", "KernelRunner", "MemoryFault", "Ran", "Reported", "RunOutcome", "Stopped"]
