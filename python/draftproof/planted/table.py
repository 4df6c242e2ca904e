"""The ten faults of the self-test by kind and name; the tests have more, composed alike."""

from typing import Any

import numpy as np

from .sound import Constrained, Filter, Sampler, Verifier, changed, faulty, held, put

SOUND: dict[str, Any] = {"sample": Sampler, "filter": Filter, "verify": Verifier, "constrained": Constrained}
FAULTS: dict[str, dict[str, Any]] = {
    "sample": {
        "top_k is at most 64": faulty(Sampler, "parameters", put(top_k=64), lambda s: s.k > 64),
        "temperature is 1 from row 256 on": faulty(
            Sampler, "parameters", put(temperature=1.0), lambda s: (s.rows >= 256) & s.drawn),
        "seeds of 32 bits": faulty(Sampler, "seeded", changed(lambda s, seeds: seeds & np.uint64(0xFFFFFFFF))),
        "filter parameters are uploaded again only when a temperature changed": faulty(
            Sampler, "parameters", held(lambda s: s.t.tobytes())),
    },
    "filter": {
        "top_k is at most 64": faulty(Filter, "parameters", put(top_k=64), lambda s: s.k > 64),
        "min_p compares logits": faulty(
            Filter, "keeps_min", lambda s, step, p: s.ranked >= 1.5 * np.log(np.maximum(s.min_p, 1e-30))[:, None]),
    },
    "verify": {
        "the residual is absolute": faulty(Verifier, "residual",
                                           lambda s, step, p, q: np.abs(p - q) if (p != q).any() else p),
        "greedy beside random is drawn": faulty(
            Verifier, "parameters", put(temperature=1.0), lambda s: (s.t == 0.0) & s.drawn.any()),
        "one coin a request": faulty(Verifier, "coin", changed(lambda s, i: 0)),
    },
    "constrained": {"state not rolled back": faulty(Constrained, "take_back", lambda s, step, matcher, moved: None)},
}
