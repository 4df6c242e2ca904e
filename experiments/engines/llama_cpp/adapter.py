"""llama.cpp's samplers on the CPU, nothing replaced."""

import ctypes

import history
import numpy as np
import table_model
from component import WITH_PROBABILITIES, Component, mixed, padded
from functions import (
    SAMPLING,
    ChainParams,
    TokenDataArray,
    Vector,
    library,
    logit_bias,
    reject,
    sample_and_match,
    sampler_free,
    sampler_init,
    sampling,
    token_data,
)

table_model.declare(library)
sampling.samplers = "temperature;top_k;top_p;min_p"  # temperature first, as the cases mean their cuts
models = {}


class Chain:
    """A sampler chain of one request: temperature first, as the cases mean their cuts."""

    def __init__(self, values, first=(), last=()):
        temperature, top_k, top_p, min_p = values
        self.chain = library.llama_sampler_chain_init(ChainParams(True))
        filters = (library.llama_sampler_init_temp(temperature), library.llama_sampler_init_top_k(top_k),
                   library.llama_sampler_init_top_p(top_p, 1), library.llama_sampler_init_min_p(min_p, 1))
        for sampler in (*first, *filters, *last):
            library.llama_sampler_chain_add(self.chain, sampler)

    def __del__(self):
        library.llama_sampler_free(self.chain)

    def apply(self, row):
        """What is left of the row, and which of it was selected."""
        data = np.zeros(len(row), token_data)
        data["id"], data["logit"] = np.arange(len(row)), row
        array = TokenDataArray(data.ctypes.data, len(row), -1, False)
        library.llama_sampler_apply(self.chain, ctypes.byref(array))
        address = (ctypes.c_char * (array.size * token_data.itemsize)).from_address(array.data)
        return np.frombuffer(address, token_data).copy(), array.selected


def values(params, i):
    given = [float(params["temperature"][i]), int(params["top_k"][i]), float(params["top_p"][i])]
    return [*given, float(params["min_p"][i]) if params.get("min_p") is not None else 0.0]


def filter_rows(logits, params, bias=None):
    out = np.full(logits.shape, -np.inf, np.float32)
    for i, row in enumerate(logits):
        first = () if bias is None else [library.llama_sampler_init_logit_bias(len(row), len(bias), bias.ctypes.data)]
        left, _ = Chain(values(params, i), first).apply(row)
        out[i, left["id"]] = left["logit"]
    return out


def filter_biased(logits, params):
    bias = np.array([(history.BIASED, history.BIAS), *((token, -np.inf) for token in history.DROPPED)], logit_bias)
    return filter_rows(history.before_constraints(logits), params, bias)


def sample(logits, params, seeds):
    tokens = []
    for i, row in enumerate(logits):
        left, selected = Chain(values(params, i), last=[library.llama_sampler_init_dist(mixed(seeds[i]))]).apply(row)
        tokens.append(left["id"][selected])
    return np.array(tokens)


class XtcChains:
    """Chains that live as long as a request, with XTC and the final draw from one seed, as `--seed` gives it to
    both."""

    probability, threshold = 0.5, 0.1

    def __init__(self):
        self.chains = {}

    def __call__(self, logits, params, seeds, steps=None):
        tokens = []
        if steps is None or not steps.any():
            self.chains.clear()
        for i, row in enumerate(logits):
            seed = mixed(seeds[i])
            if seed not in self.chains:
                self.chains[seed] = Chain(values(params, i), last=[
                    library.llama_sampler_init_xtc(self.probability, self.threshold, 1, seed),
                    library.llama_sampler_init_dist(seed)])
            left, selected = self.chains[seed].apply(row)
            tokens.append(left["id"][selected])
        return np.array(tokens)

    def distribution(self, logits, params):
        """XTC as its author defines it: with this probability all tokens above the threshold but the least likely of
        them go."""
        import draftproof

        whole = draftproof.process_rows(logits, params).probabilities.astype(np.float64)
        cut = whole.copy()
        for row, left in zip(whole, cut):
            above = np.flatnonzero(row >= self.threshold)
            if len(above) >= 2:
                left[above[row[above] > row[above].min()]] = 0.0
        cut /= cut.sum(axis=1, keepdims=True)
        return (self.probability * cut + (1.0 - self.probability) * whole).astype(np.float32)


def verify(rejects, draft_tokens, draft_probs, target_logits, cu_num_draft_tokens, params, seeds):
    """Each request as llama-server verifies it: the rows are decoded, then one sampler of the request draws and
    accepts."""
    vocab_size = target_logits.shape[1]
    model = models.setdefault(vocab_size, table_model.TableModel(library))
    places = model.decode(target_logits).astype(np.int32)
    emitted, lens = [], np.diff(cu_num_draft_tokens, prepend=0)
    for b, (length, end) in enumerate(zip(lens, cu_num_draft_tokens)):
        sampling.seed = mixed(seeds[b])
        sampling.temp, sampling.top_k, sampling.top_p, sampling.min_p = values(params, b)
        sampler = sampler_init(model.model, SAMPLING)
        at, drafts = Vector(places[end - length + b:end + b + 1]), Vector(draft_tokens[end -
                length:end].astype(np.int32))
        found = Vector()
        if rejects:
            candidates = []
            for q in draft_probs[end - length:end]:
                row = np.zeros(vocab_size, token_data)
                row["id"], row["p"] = np.arange(vocab_size), q
                candidates.append(Vector(row[q > 0.0]))
            reject(found, sampler, model.context, at, drafts, Vector.of_vectors(candidates), False)
        else:
            sample_and_match(found, sampler, model.context, at, drafts, False)
        emitted.append(found.taken())
        sampler_free(sampler)
    return padded(emitted, lens.max() + 1)


def components():
    source, speculative = "src/llama-sampler.cpp", "common/sampling.cpp"
    seeds = "a seed of 64 bits is mixed into the 32 that init_dist takes"
    model = "the rows are the logits of a model made for them, which llama_decode runs; a sampler is made for each step"
    filters, xtc = "llama_sampler_init_temp, _top_k, _top_p, _min_p; llama_sampler_apply", XtcChains()
    return [
        Component("filters", source, filters, "filter", filter_rows),
        Component("logit bias", source, "llama_sampler_init_logit_bias, then the filters", "filter", filter_biased,
                  options=history.with_constraints()),
        Component("filters and draw", source, "the same with llama_sampler_init_dist", "sample", sample, note=seeds),
        Component("XTC and draw, one seed", source, "the same with llama_sampler_init_xtc", "sample", xtc,
                  options={"distribution": xtc.distribution},
                  note=f"{seeds}; XTC and the final draw get the request's seed, as llama.cpp's own "
                       "common_sampler_init "
                  "gives it to both"),
        Component("speculative: sample and match", speculative, "common_sampler_sample_and_accept_n", "verify",
                  lambda *a: verify(False, *a), tv=0.1, note=f"{model}; {seeds}"),
        Component("speculative: rejection", speculative, "common_sampler_sample_and_accept_n_rejection", "verify",
                  lambda *a: verify(True, *a), tv=0.1, options=WITH_PROBABILITIES, note=f"{model}; {seeds}"),
    ]
