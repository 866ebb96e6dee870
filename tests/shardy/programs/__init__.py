"""Real programs, lowered from JAX: one file for each family of models.

Importing the package registers all of them; `registry.names` lists and `registry.text` lowers them.
"""

from tests.shardy.programs import gpt as gpt
