"""``python -m shardcore``: the command line."""

import sys

from shardcore.cli import main

sys.exit(main())
