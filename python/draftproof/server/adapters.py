"""Names of parameters and shapes of answers of each server, as data; which server it is, found by asking.

Sources: the servers' public sources and documentation; llama.cpp, vLLM, transformers and MLX LM also seen at work."""

import json
import re
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .._core import Error
from .wire import Wire


class Parameter(NamedTuple):
    """neutral: without effect, None: not sent. probe: what it is sent alone with once, so that one that the server
    refuses or does not survive is known. moves: it changes which tokens are kept, or how probable they are, in a way
    that leaves open how much of a tail beyond the list is kept."""

    neutral: float | None
    probe: float | None = None
    moves: bool = False


# Every request sends every parameter: defaults differ between servers (top_k 40, top_p 0.95, min_p 0.05 in llama.cpp).
PARAMETERS = {"temperature": Parameter(1.0), "top_k": Parameter(-1, -2), "top_p": Parameter(1.0, 0.9, True),
              "min_p": Parameter(0.0, 0.1, True), "presence_penalty": Parameter(0.0, 0.7, True),
              "frequency_penalty": Parameter(0.0, 0.7, True), "repetition": Parameter(1.0, 1.2),
              "logit_bias": Parameter(None, None, True), "window": Parameter(64)}
NEUTRAL = {name: parameter.neutral for name, parameter in PARAMETERS.items()}
PROBED = {name: parameter.probe for name, parameter in PARAMETERS.items() if parameter.probe is not None}

# Requests of servers for a schema.
SCHEMAS = {"schema": lambda schema: schema, "text": json.dumps,
           "value": lambda schema: {"type": "json", "value": schema},
           "openai": lambda schema: {"type": "json_schema", "json_schema": {"name": "one", "schema": schema}}}
_OPENAI = {"path": "/v1/completions", "steps": "choices.0.logprobs", "text": "choices.0.text",
           "finish": "choices.0.finish_reason", "counted": "usage.completion_tokens", "prompted": "usage.prompt_tokens"}
_OPENAI_NAMES = {"repetition": "repetition_penalty", "schema": "response_format", "window": None}
_NO = dict.fromkeys(("stop_token_ids", "min_tokens", "n", "schema", "window", "stream", "logit_bias", "ignore_eos"))

# One row a server, in the order in which they are tried. `ask`: paths and what an answer holds; `version`: paths and
# key; the others are fields of Adapter.
SERVERS: list[dict[str, Any]] = [
    {"engine": "llama.cpp", "ask": ("/props", "default_generation_settings"), "version": ("/props", "build_info"),
     "path": "/completion", "logprobs": 40, "instead": {"top_k": [-1, 0]}, "bias_pairs": True, "model": False,
     "names": {"max_tokens": "n_predict", "repetition": "repeat_penalty", "logprobs": "n_probs",
               "window": "repeat_last_n", "schema": "json_schema", "stop_token_ids": None, "min_tokens": None,
               "n": None},
     "extra": {"typical_p": 1.0, "top_n_sigma": -1.0, "xtc_probability": 0.0, "dry_multiplier": 0.0, "mirostat": 0,
               "dynatemp_range": 0.0, "post_sampling_probs": False, "return_tokens": True, "cache_prompt": True},
     "fresh": {"cache_prompt": False}, "steps": "completion_probabilities", "text": "content", "finish": "stop_type",
     "counted": "tokens_predicted", "prompted": "tokens_evaluated", "ids": "tokens",
     "accepted": "timings.draft_n_accepted", "tokenize": ["/tokenize", "content", "tokens"],
     "counters": "llamacpp:spec_decode_num_accepted_tokens_total", "other_names": {"repetition": "repetition_penalty"}},
    {**_OPENAI, "engine": "vLLM", "ask": ("/v1/models", r"'owned_by': 'vllm'"), "version": ("/version", "version"),
     "names": {**_OPENAI_NAMES, "beams": "use_beam_search"}, "schema": "openai", "fresh": {"cache_salt": "draftproof"},
     "extra": {"return_tokens_as_token_ids": True, "return_token_ids": True}, "ids": "choices.0.token_ids",
     "tokenize": ["/tokenize", "prompt", "tokens"], "counters": r"vllm:spec_decode_num_accepted_tokens(_total)?"},
    {"engine": "SGLang", "ask": ("/get_model_info /model_info", "model_path"),
     "version": ("/get_server_info /server_info", "version"), "path": "/generate", "prompt": "text",
     "prompt_ids": "input_ids", "nest": "sampling_params", "model": False,
     "names": {**_NO, "max_tokens": "max_new_tokens", "repetition": "repetition_penalty", "seed": "sampling_seed",
               "min_tokens": "min_new_tokens", "logprobs": "/top_logprobs_num", "logit_bias": "logit_bias",
               "stop_token_ids": "stop_token_ids", "ignore_eos": "ignore_eos", "schema": "json_schema"},
     "schema": "text",
     "extra": {"return_logprob": True}, "silent": {"return_logprob": False}, "steps": "meta_info.output_token_logprobs",
     "tops": "meta_info.output_top_logprobs", "text": "text", "finish": "meta_info.finish_reason.type",
     "counted": "meta_info.completion_tokens", "prompted": "meta_info.prompt_tokens", "ids": "output_ids",
     "per_step": "meta_info.spec_accept_length", "tokenize": ["/tokenize", "prompt", "tokens"]},
    {**_OPENAI, "engine": "TensorRT-LLM", "ask": ("/v1/models", r"'owned_by': 'tensorrt_llm'"),
     "version": ("/version", "version"), "schema": "openai", "instead": {"top_k": [-1, 0]},
     "names": {**_OPENAI_NAMES, "beams": "use_beam_search", "best_of": "best_of"}, "logprobs": 5,
     "ids": "choices.0.token_ids", "per_step": "choices.0.avg_decoded_tokens_per_iter",
     "tokenize": ["/_internal/tokenize", "prompt", "tokens"]},
    {"engine": "TGI", "ask": ("/info", "max_input_tokens|max_concurrent_requests"), "version": ("/info", "version"),
     "path": "/generate", "prompt": "inputs", "nest": "parameters", "model": False,
     "names": {**_NO, "max_tokens": "max_new_tokens", "repetition": "repetition_penalty", "logprobs": "top_n_tokens",
               "min_p": None, "presence_penalty": None, "schema": "grammar"}, "schema": "value",
     "inner": {"details": True, "do_sample": True}, "greedy": {"do_sample": False}, "logprobs": 5,
     "instead": {"top_k": [-1, None], "top_p": [1.0, None], "temperature": [0.0, None], "repetition": [1.0, None],
                 "frequency_penalty": [0.0, None]},
     "steps": "details.tokens", "tops": "details.top_tokens", "text": "generated_text",
     "finish": "details.finish_reason", "counted": "details.generated_tokens"},
    {"engine": "Ollama", "ask": ("/v1/models", r"'owned_by': 'library'"), "version": ("/api/version", "version"),
     "path": "/api/generate", "nest": "options", "instead": {"top_k": [-1, 0]},
     "names": {**_NO, "max_tokens": "num_predict", "repetition": "repeat_penalty", "window": "repeat_last_n",
               "logprobs": "/top_logprobs", "schema": "/format"},
     "extra": {"raw": True, "stream": False, "logprobs": True}, "silent": {"logprobs": False}, "steps": "logprobs",
     "text": "response", "finish": "done_reason", "counted": "eval_count", "prompted": "prompt_eval_count"},
    {**_OPENAI, "engine": "transformers", "ask": ("/openapi.json", "/load_model"), "version": ("/version", "version"),
     "names": {**_NO, "stream": "stream", "logprobs": None, "repetition": None, "presence_penalty": None, "top_k": None,
               "min_p": None}},
    {**_OPENAI, "engine": "MLX LM", "ask": ("/v1/models", r"'object': 'model', 'created': \d+\}"),
     "version": ("/version", "version"), "logprobs": 10, "instead": {"top_k": [-1, 0]}, "extra": {"logprobs": True},
     "names": {**_NO, "stream": "stream", "logprobs": "top_logprobs", "repetition": "repetition_penalty",
               "logit_bias": "logit_bias"}},
    {**_OPENAI, "engine": "generic", "ask": ("/v1/models", "'id': "), "version": ("/version", "version"),
     "names": _OPENAI_NAMES, "schema": "openai"},
]

FINISH = {"limit": "length", "word": "stop", "eos": "stop", "eos_token": "stop", "stop_sequence": "stop"}


@dataclass
class Step:
    """One token of an answer: its key (id, else bytes or text) and the list [(key, logprob)], best first. Of a server
    without lists, one character."""

    token: Any
    logprob: float
    top: list[tuple[Any, float]]


@dataclass
class Text:
    """One answer. `counted`, `prompted`: the server's own counts of tokens, None where it gives none. `ids`: of all
    tokens, where they stand beside the lists. `accepted`: the server's count of accepted drafts. `before`: the prompt's
    ids, where it was asked so."""

    steps: list[Step]
    text: str
    finish: str
    counted: int | None
    prompted: int | None = None
    ids: list[int] = field(default_factory=list)
    accepted: int = 0
    before: list[int] = field(default_factory=list)


@dataclass
class Adapter:
    """One server. Places in answers are keys and indices, by dots; that of a choice has the index 0.

    names: its name of a parameter; '/NAME' stands beside `nest`, not in it; None: it has no such parameter.
    other_names: names of other servers that it might accept without effect. instead: [value, what is sent for it],
    None: nothing. extra: sent with every request, inner: within `nest`; greedy, silent, fresh: sent at temperature 0,
    without logprobs, without the prefix cache. logprobs: the longest list, 0 of a server without. tokenize: path, field
    of the text, field of the ids. per_step: place of the mean number of tokens a step. schema: of SCHEMAS. counters:
    expression of names at /metrics that grow with accepted drafts."""

    engine: str
    version: str
    path: str
    names: dict
    steps: str
    text: str
    finish: str
    counted: str
    prompted: str = ""
    tops: str = ""
    ids: str = ""
    accepted: str = ""
    per_step: str = ""
    extra: dict = field(default_factory=dict)
    inner: dict = field(default_factory=dict)
    greedy: dict = field(default_factory=dict)
    silent: dict = field(default_factory=dict)
    fresh: dict = field(default_factory=dict)
    instead: dict = field(default_factory=dict)
    other_names: dict = field(default_factory=dict)
    schema: str = "schema"
    tokenize: list = field(default_factory=list)
    logprobs: int = 20
    prompt: str = "prompt"
    prompt_ids: str = "prompt"
    nest: str = ""
    bias_pairs: bool = False
    counters: str = r"\S*spec\w*accept\w*"

    def offers(self, name: str) -> bool:
        return self.names.get(name, name) is not None

    def body(self, prompt: str | list[int], settings: dict, dropped: frozenset = frozenset()) -> dict:
        """Returns the JSON of a request: a prompt of text or of token ids. A value of None is not sent."""
        values = {**NEUTRAL, "logprobs": self.logprobs or None, **settings}
        outer = {self.prompt if isinstance(prompt, str) else self.prompt_ids: prompt, **self.extra,
                 **(self.silent if values["logprobs"] is None else {})}
        inner = outer if not self.nest else outer.setdefault(self.nest, {})
        inner.update(self.inner | (self.greedy if values["temperature"] == 0 else {}))
        for key, value in values.items():
            name, (like, stands) = self.names.get(key, key), self.instead.get(key, (None, None))
            if key in self.instead and value == like:
                value = stands
            if value is None or name is None or key in dropped:
                continue
            if key == "logit_bias" and self.bias_pairs:
                value = [[int(token), bias] for token, bias in value.items()]
            if key == "schema":
                value = SCHEMAS[self.schema](value)  # type: ignore[operator]
            (outer if name.startswith("/") else inner)[name.lstrip("/")] = value
        return outer

    def read(self, answer: Any, choice: int = 0) -> Text:
        """Returns one text of an answer, or of a list of a stream's parts. Raises Error naming a missing field."""
        if isinstance(answer, list):
            answer = self.joined(answer)
        if not isinstance(answer, dict):
            raise Error("the answer is no JSON object")

        def at(place: str) -> Any:
            return _at(answer, place.replace(".0.", f".{choice}."))
        if at(self.text) is None:
            raise Error(f"the answer has no '{self.text.replace('.0.', f'.{choice}.')}'")
        finish, counted = str(at(self.finish) or ""), at(self.counted)
        accepted = int(at(self.accepted) or 0) if self.accepted else 0
        if self.per_step and counted:
            accepted = round(counted * (1 - 1 / max(1.0, float(at(self.per_step) or 1.0))))
        steps = (_steps(at(self.steps), at(self.tops) if self.tops else None, self.logprobs) if self.logprobs else
                 [Step(character, float("-inf"), []) for character in str(at(self.text))])
        return Text(steps, str(at(self.text)),
                    FINISH.get(finish, finish), counted, at(self.prompted) if self.prompted else None,
                    list(at(self.ids) or [] if self.ids else []), accepted)

    def joined(self, parts: list[dict]) -> dict:
        """Returns the parts of a stream as the answer that is not streamed."""
        if not self.text.startswith("choices."):
            places = [place for part in parts for place in part.get(self.steps) or []]
            return {**(parts[-1] if parts else {}), self.steps: places,
                    self.text: "".join(part.get(self.text) or "" for part in parts)}
        texts = [choice for part in parts for choice in part.get("choices") or [] if not choice.get("index")]
        listed: dict = {}
        for choice in texts:
            for key, values in (choice.get("logprobs") or {}).items():
                listed.setdefault(key, []).extend(values or [])
        finish = next((choice["finish_reason"] for choice in texts if choice.get("finish_reason")), "")
        usage: dict = next((part["usage"] for part in reversed(parts) if part.get("usage")), {})
        return {"choices": [{"text": "".join(choice.get("text") or "" for choice in texts), "finish_reason": finish,
                             "logprobs": listed}], "usage": usage}


def _at(answer: Any, place: str) -> Any:
    """Returns what stands at a place of an answer, None where there is none."""
    for key in place.split("."):
        if isinstance(answer, list) and key.isdigit():
            answer = answer[int(key)] if int(key) < len(answer) else None
        else:
            answer = answer.get(key) if isinstance(answer, dict) else None
    return answer


def _entry(entry: dict | list) -> tuple[Any, float | None]:
    """Returns key and logprob: of {id, token or text, bytes, logprob}, or of [logprob, id, text]."""
    if isinstance(entry, list):
        return entry[1], entry[0]
    text = entry.get("token", entry.get("text", ""))
    if entry.get("id") is not None:
        key = entry["id"]
    elif str(text).startswith("token_id:"):
        key = int(text[9:])
    else:
        key = tuple(entry["bytes"]) if entry.get("bytes") else text
    return key, entry.get("logprob")


def _steps(listed: Any, tops: list | None, count: int) -> list[Step]:
    """Returns steps. The drawn token that some servers list beside the top `count` is cut off: it is the smallest."""
    if isinstance(listed, dict) and listed.get("content") is not None:
        listed = listed["content"]
    if isinstance(listed, dict):  # three arrays; the lists are dictionaries by token
        tokens = listed.get("tokens") or []
        tops = [[{"token": key, "logprob": value} for key, value in (row or {}).items()]
                for row in listed.get("top_logprobs") or [None] * len(tokens)]
        listed = [{"token": token, "logprob": value}
                  for token, value in zip(tokens, listed.get("token_logprobs") or [])]
    steps = []
    for number, place in enumerate(listed or []):
        row = place.get("top_logprobs") if tops is None else tops[number] if number < len(tops) else None
        top = sorted(((key, float(value)) for key, value in map(_entry, row or []) if value is not None),
                     key=lambda pair: -pair[1])
        key, value = _entry(place)
        steps.append(Step(key, float("-inf") if value is None else float(value), top[:count]))
    return steps


def sniff(wire: Wire, model: str | None = None) -> Adapter:
    """Returns the adapter of the server at the other end. Raises Error if it serves no language model."""
    known: dict[str, Any] = {}

    def ask(paths: str) -> list[Any]:
        for path in paths.split():
            if path not in known:
                known[path] = wire.get(path)
        return [known[path] for path in paths.split() if known[path] is not None]
    row = next((row for row in SERVERS
                if any(re.search(row["ask"][1], str(said)) for said in ask(row["ask"][0]))), None)
    if row is None:
        raise Error(f"{wire.origin} is not a server of language models: neither /v1/models nor /props answers as one")
    models: list = next((said["data"] for said in ask("/v1/models") if isinstance(said, dict) and said.get("data")), [])
    names = [str(entry.get("id")) for entry in models]
    if model is not None and names and model not in names:
        raise Error(f"the server has no model '{model}'; it has {', '.join(names[:8])}")
    paths, key = row["version"]
    version = next((str(said[key]) for said in ask(paths) if isinstance(said, dict) and said.get(key)), "")
    fields = {name: value for name, value in row.items() if name not in ("ask", "version", "model")}
    named = {"model": model or names[0]} if row.get("model", True) and (model or names) else {}
    return Adapter(**{**fields, "version": version, "extra": {**row.get("extra", {}), **named}})
