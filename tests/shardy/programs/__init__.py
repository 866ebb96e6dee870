"""Real programs, lowered from JAX: one file for each family of models.

Importing the package registers all of them; `registry.names` lists and `registry.text` lowers them.
"""

from tests.shardy.programs import calls as calls
from tests.shardy.programs import control as control
from tests.shardy.programs import custom as custom
from tests.shardy.programs import decode as decode
from tests.shardy.programs import explicit as explicit
from tests.shardy.programs import gpt as gpt
from tests.shardy.programs import gpt_scan as gpt_scan
from tests.shardy.programs import indexing as indexing
from tests.shardy.programs import linear_algebra as linear_algebra
from tests.shardy.programs import manual as manual
from tests.shardy.programs import mlp as mlp
from tests.shardy.programs import moe as moe
from tests.shardy.programs import recurrent as recurrent
from tests.shardy.programs import resnet as resnet
from tests.shardy.programs import seq2seq as seq2seq
from tests.shardy.programs import unusual as unusual
from tests.shardy.programs import vision as vision
