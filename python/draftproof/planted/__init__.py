"""Ten planted faults: samplers, filters and verifiers in plain numpy that have one each, and the same without. They
import nothing of draftproof, which audits them in `self_test`.

FAULTS[kind][name] makes the callable with a fault; SOUND[kind] the sound one.
"""

from .self_test import Planted, SelfTest, self_test
from .table import FAULTS, SOUND

__all__ = ["FAULTS", "SOUND", "Planted", "SelfTest", "self_test"]
