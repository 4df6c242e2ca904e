"""Names of parameters and shapes of answers of each server; which server it is, found by asking."""

from dataclasses import dataclass

from .._core import Error
from .wire import Wire

OPENAI = {"max_tokens": "max_tokens", "repetition": "repetition_penalty"}
LLAMA = {"max_tokens": "n_predict", "repetition": "repeat_penalty", "logprobs": "n_probs"}

# Every request sends every parameter: defaults differ between servers (top_k 40, top_p 0.95, min_p 0.05 in llama.cpp).
NEUTRAL = {"temperature": 1.0, "top_k": -1, "top_p": 1.0, "min_p": 0.0, "repetition": 1.0, "presence_penalty": 0.0,
           "frequency_penalty": 0.0}


@dataclass
class Step:
    """One token of an answer: its key (id, else bytes or text) and the list [(key, logprob)], best first."""

    token: object
    logprob: float
    top: list[tuple[object, float]]


@dataclass
class Text:
    """One answer. `counted` is the server's own count of tokens, None where it gives none."""

    steps: list[Step]
    text: str
    finish: str
    counted: int | None


@dataclass
class Adapter:
    """One kind of server: `engine`, path of requests, names, the most logprobs that it gives."""

    engine: str
    version: str
    path: str
    names: dict
    extra: dict
    logprobs: int

    def body(self, prompt: str, settings: dict, dropped: frozenset = frozenset()) -> dict:
        """Returns the JSON of a request. A seed of None is not sent."""
        values = {**NEUTRAL, "logprobs": self.logprobs, **settings}
        if self.engine == "llama.cpp" and values["top_k"] < 0:
            values["top_k"] = 0
        named = {self.names.get(key, key): value for key, value in values.items()
                 if value is not None and key not in dropped}
        return {"prompt": prompt, **self.extra, **named}

    def read(self, answer: object) -> Text:
        """Returns the text of an answer. Raises Error naming the field that is missing."""
        if not isinstance(answer, dict):
            raise Error("the answer is no JSON object")
        if self.path == "/completion":
            places, finish = answer.get("completion_probabilities"), answer.get("stop_type", "")
            finish = {"limit": "length", "word": "stop", "eos": "stop"}.get(finish, finish)
            return Text(_places(places or [], self.logprobs), answer.get("content", ""), finish,
                        answer.get("tokens_predicted"))
        choices = answer.get("choices")
        if not choices:
            raise Error("the answer has no 'choices'")
        choice = choices[0]
        listed = choice.get("logprobs") or {}
        places = listed.get("content")
        if places is None:
            rows = listed.get("top_logprobs") or [None] * len(listed.get("tokens") or [])
            drawn = zip(listed.get("tokens") or [], listed.get("token_logprobs") or [], rows)
            places = [{"token": token, "logprob": value, "top_logprobs":
                       [{"token": key, "logprob": l} for key, l in (row or {}).items()]} for token, value, row in drawn]
        return Text(_places(places, self.logprobs), choice.get("text") or "", choice.get("finish_reason") or "",
                    (answer.get("usage") or {}).get("completion_tokens"))


def _key(entry: dict) -> object:
    if entry.get("id") is not None:
        return entry["id"]
    text = entry.get("token", "")
    if text.startswith("token_id:"):
        return int(text[9:])
    return tuple(entry["bytes"]) if entry.get("bytes") else text


def _places(places: list, count: int) -> list[Step]:
    """Returns steps. The drawn token that some servers list beside the top `count` is cut off: it is the smallest."""
    steps = []
    for place in places:
        top = sorted(((_key(entry), float(entry["logprob"])) for entry in place.get("top_logprobs") or []
                      if entry.get("logprob") is not None), key=lambda pair: -pair[1])
        value = place.get("logprob")
        steps.append(Step(_key(place), float("-inf") if value is None else float(value), top[:count]))
    return steps


def sniff(wire: Wire, model: str | None = None) -> Adapter:
    """Returns the adapter of the server at the other end. Raises Error if it serves no language model."""
    props, listed, said = wire.get("/props"), wire.get("/v1/models"), wire.get("/version")
    if isinstance(props, dict) and "default_generation_settings" in props:
        extra = {"typical_p": 1.0, "top_n_sigma": -1.0, "xtc_probability": 0.0, "dry_multiplier": 0.0, "mirostat": 0,
                 "dynatemp_range": 0.0, "post_sampling_probs": False, "return_tokens": True, "cache_prompt": True}
        return Adapter("llama.cpp", str(props.get("build_info", "")), "/completion", LLAMA, extra, 40)
    models = listed.get("data") if isinstance(listed, dict) else None
    if not models:
        raise Error(f"{wire.origin} is not a server of language models: neither /v1/models nor /props answers as one")
    names = [str(entry.get("id")) for entry in models]
    if model is not None and model not in names:
        raise Error(f"the server has no model '{model}'; it has {', '.join(names[:8])}")
    owner = str(models[0].get("owned_by", "")).lower()
    extra = {"model": model or names[0]}
    version = str(said.get("version", "")) if isinstance(said, dict) else ""
    if owner == "vllm":
        return Adapter("vLLM", version, "/v1/completions", OPENAI, {**extra, "return_tokens_as_token_ids": True}, 20)
    if owner == "sglang" or isinstance(wire.get("/get_model_info"), dict):
        return Adapter("SGLang", version, "/v1/completions", OPENAI, extra, 20)
    return Adapter("generic", version, "/v1/completions", OPENAI, extra, 20)
