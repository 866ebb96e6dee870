"""Models as people train and serve them, lowered from JAX, to be held against XLA.

Importing the package registers all of them; `catalog.names` lists and `catalog.text` lowers them.
"""

from tests.shardy.xla.models import fields as fields
from tests.shardy.xla.models import fused as fused
from tests.shardy.xla.models import llama as llama
from tests.shardy.xla.models import longer as longer
from tests.shardy.xla.models import lookup as lookup
from tests.shardy.xla.models import manual as manual
from tests.shardy.xla.models import mixture as mixture
from tests.shardy.xla.models import optimizers as optimizers
from tests.shardy.xla.models import sequences as sequences
from tests.shardy.xla.models import serving as serving
from tests.shardy.xla.models import vision as vision
