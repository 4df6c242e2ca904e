"""draftproof: checks whether a sampler or a speculative-decoding verifier is exactly lossless."""

from importlib.metadata import version

from ._audit import audit_draws, audit_steps, check_filter
from ._core import Error
from ._documents import Acceptance, Generated, Lab, Parity, Prediction, Proof, Proofs, Simulation, Tree
from ._parity import LogitsRecorder, record_logits
from ._program import acceptance, generate, lab, parity, predict, program, prove, sim, tree
from ._results import Audit, FilterCheck, FilterRow, Position, Test
from ._sampling import Rows, Verified, Verifier, process_rows, sample, sample_shards, verifiers, verify
from .callable.audit_callable import audit_callable, run_case
from .callable.beams import BeamAudit, audit_beams
from .callable.cases.constrained import ConstrainedCase
from .callable.cases.filter_cases import FilterCase
from .callable.cases.grammars import Grammar, Matcher
from .callable.cases.request_cases import RequestCase
from .callable.cases.sample_cases import SampleCase
from .callable.cases.verify_cases import VerifyCase
from .callable.cases.verify_sweep import StepsCase
from .callable.outcome import CallableAudit, CaseResult, Failure
from .server import ServerAudit, audit_logprobs, audit_server

__version__ = version("draftproof")

__all__ = [
    "Acceptance", "Audit", "BeamAudit", "CallableAudit", "CaseResult", "ConstrainedCase", "Error", "Failure",
    "FilterCase",
    "FilterCheck", "FilterRow", "Generated", "Grammar", "Lab", "LogitsRecorder", "Matcher", "Parity", "Position",
    "Prediction", "Proof", "Proofs", "RequestCase", "Rows", "SampleCase", "ServerAudit", "Simulation", "StepsCase",
    "Test", "Tree", "Verified", "Verifier", "VerifyCase", "acceptance", "audit_beams", "audit_callable", "audit_draws",
    "audit_logprobs", "audit_server", "audit_steps", "check_filter", "generate", "lab", "parity", "predict",
    "process_rows",
    "program", "prove", "record_logits", "run_case", "sample", "sample_shards", "sim", "tree", "verifiers", "verify",
]
