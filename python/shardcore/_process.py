"""What has to be done after the process forks, and before it ends."""

import atexit
import os

from shardcore import _core

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_core.after_fork_in_child)
atexit.register(_core.finish)
