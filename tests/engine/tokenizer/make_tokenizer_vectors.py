#!/usr/bin/env python3
"""Writes the vectors of the tokenizers: tests/vectors/tokenizers.json and, of the shipped model, smollm2_ids.json.

They are committed, so this is run only to change them:
    python3 -m venv venv && venv/bin/pip install tokenizers sentencepiece gguf jinja2
    venv/bin/python tests/engine/tokenizer/make_tokenizer_vectors.py build/models/SmolLM2-135M-Instruct.gguf
Small vocabularies are trained here on the texts below; ids are what `tokenizers` and `sentencepiece` give. The
vocabulary of the shipped model is taken out of its file. The chat template is run by Jinja.
Last written with tokenizers 0.23.3, sentencepiece 0.2.3, gguf 0.19.0.
"""

import io
import json
import pathlib
import random
import sys

import jinja2
import sentencepiece
from gguf import GGUFReader
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

VECTORS = pathlib.Path(__file__).resolve().parents[2] / "vectors"

TEXTS = [
    "", " ", "a", "Hello world", "  two  spaces  inside and behind  ",
    "Hello, world! How's it going? I'd say they'll've we're I'm",
    "IT'S SHE'LL 'S 'LL'x don't 's", "déjà vu, Ångström, naïve, ça va, Zoë; cafe\u0301",
    "日本語のテキスト。漢字とかな、中文文本,한국어 텍스트",
    "emoji 🙂👍🏽👨‍👩‍👧‍👦 🇩🇪 ❤️ end", "مرحبا بالعالم हिन्दी ไทย Ελληνικά Кириллица",
    "12345 3.14159 1,000,000 2024-01-31 0x1F x1y22z333 ½ ² Ⅷ ٣٤ 一二",
    "tabs\tand\nnew lines\r\n\r\n  \n\n\n   indented\n\tcode();\n",
    " " * 70, " " * 33 + "x" + " " * 17 + "\n" * 9 + " y", "a" * 60, "0" * 25, "!" * 40 + "?!" * 9, "\n \n  \n   \n",
    "end with space ",
    "nbsp\u00a0nel\u0085mvs\u180ezwsp\u200bls\u2028ps\u2029nnbsp\u202fideographic\u3000bom\ufeff.",
    "".join(map(chr, range(0, 128))),
    "".join(map(chr, range(128, 256))), "<|im_start|>user\nhi<|im_end|>",
    "mixed日本12語34Text_with-punct(uation)[1]{2}",
    "for (int i = 0; i < n; ++i) { x[i] += 1; }",
    "\u2581 already \u2581", "\U0001f600\U0010ffff\U00020000 rare", "The quick brown fox jumps over the lazy dog. " * 2,
]
ALPHABET = list("aabest 'st'reLL  \n\r\t.,!?-_019½é日🙂\u00a0\u3000م\u0301")

# Maps each pre-tokenizer name in a GGUF file to its equivalent in `tokenizers`.
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| "
          r"?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")


def byte_level(use_regex):
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=use_regex)


def split(expression):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(expression), "isolated"), byte_level(False)])


PRE_TOKENIZERS = {
    "gpt-2": byte_level(True),
    "smollm": pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level(True)]),
    "llama-bpe": split(LLAMA3),
    "qwen2": split(QWEN2),
}


def texts(seed, count):
    generator = random.Random(seed)
    return TEXTS + ["".join(generator.choices(ALPHABET, k=generator.randint(1, 16))) for _ in range(count)]


def cases(encode, seed, count=40):
    return [[text, encode(text)] for text in texts(seed, count)]


def byte_level_vectors():
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = PRE_TOKENIZERS["gpt-2"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trained.train_from_iterator(TEXTS * 2,
                                trainers.BpeTrainer(vocab_size=420, initial_alphabet=alphabet, show_progress=False))
    model = json.loads(trained.to_str())["model"]
    result = {"model": model, "pre_tokenizers": {}}
    for seed, (name, pre_tokenizer) in enumerate(PRE_TOKENIZERS.items()):
        ignore = name == "llama-bpe"
        tokenizer = Tokenizer.from_str(json.dumps({**json.loads(trained.to_str()),
                                                   "model": {**model, "ignore_merges": ignore}}))
        tokenizer.pre_tokenizer = pre_tokenizer
        described = json.loads(tokenizer.to_str())["pre_tokenizer"]
        result["pre_tokenizers"][name] = {
            "pre_tokenizer": described,
            "ignore_merges": ignore,
            "cases": cases(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, seed),
        }
    return result


# Composed and not, in one order of marks and the other, Hangul by letters, singletons, what composition leaves alone.
MARKS = [
    "cafe\u0301 De\u0301ja\u0300 vu", "\u212bngstro\u0308m, \u2126, K\u212a",
    "q\u0307\u0323 q\u0323\u0307 s\u0323\u0307", "\u1112\u1161\u11ab\u1100\u116e\u11a8\uac00\u11a8",
    "\u0958\u09dc\u0344\u0387\u1fef", "\ufb01 \u00bd \u2460 \uff21", "a\u0301\u0301 \u0301 \n\u0301x",
    "e\u0301<|end|>e\u0301", "\U0001d15e \U0002f800 \ufa0e\uf900", "\u3051\u3099\u304b\u309a\u30cf\u309a",
]


def composed_vectors(model):
    tokenizer = Tokenizer.from_str(json.dumps({**json.loads(Tokenizer(models.BPE()).to_str()), "model": model}))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = PRE_TOKENIZERS["qwen2"]
    tokenizer.add_special_tokens(["<|end|>"])
    generator = random.Random(12)
    marked = ["".join(generator.choices("aeoqs \u0301\u0323\u0307\u0308\u0344\u1100\u1161\u11a8\u304b\u3099\u309a",
                                        k=12)) for _ in range(60)]
    described = json.loads(tokenizer.to_str())
    return {"normalizer": described["normalizer"],
            "cases": [[text, tokenizer.encode(text).ids] for text in texts(11, 20) + MARKS + marked]}


def metaspace_vectors():
    """Characters merged by rank, bytes for what is unknown, as the files of Llama 2 and Mistral have it."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    special = ["<unk>", "<s>", "</s>"] + [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=460, special_tokens=special, limit_alphabet=70, show_progress=False)
    tokenizer.train_from_iterator(TEXTS[:8] * 2, trainer)
    described = json.loads(tokenizer.to_str())
    described["added_tokens"] = described["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(described))
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    return {"tokenizer": described,
            "cases": cases(lambda text: tokenizer.encode(text, add_special_tokens=False).ids, 7)}


def sentence_piece_vectors():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXTS[3:8] * 20 + TEXTS[25:26] * 20), model_writer=model, model_type="bpe",
        vocab_size=420, byte_fallback=True,
        normalization_rule_name="identity", remove_extra_whitespaces=False, character_coverage=0.99, minloglevel=2,
        user_defined_symbols=["<tool>"])
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())
    pieces = [processor.id_to_piece(i) for i in range(len(processor))]
    kinds = [3 if processor.is_control(i) else 2 if processor.is_unknown(i) else 6 if processor.is_byte(i) else 1
             for i in range(len(pieces))]
    kinds[pieces.index("<tool>")] = 4
    scores = [processor.get_score(i) for i in range(len(pieces))]
    # The library ends a text at a zero character, and keeps its own symbol for spaces apart.
    usable = [text for text in texts(8, 40) if "\0" not in text and text != ""]
    return {"pieces": pieces, "kinds": kinds, "scores": scores,
            "cases": [[text, processor.encode(text)] for text in usable]}


CONVERSATIONS = [
    [("user", "Hello!")],
    [("system", "Answer in one word."), ("user", "Which language is 'déjà vu'?")],
    [("user", " two  spaces\n"), ("assistant", "ok"), ("user", "1 + 1 = 2?\n\n")],
    [("user", "")],
]


def shipped_vectors(path):
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(merge.split(" ")) for merge in fields["tokenizer.ggml.merges"].contents()]
    tokenizer = Tokenizer(models.BPE(vocab={token: i for i, token in enumerate(tokens)}, merges=merges))
    tokenizer.pre_tokenizer = PRE_TOKENIZERS["smollm"]
    with_special = Tokenizer.from_str(tokenizer.to_str())
    with_special.add_special_tokens([token for token, kind in zip(tokens, kinds) if kind == 3])
    template = jinja2.Environment().from_string(fields["tokenizer.chat_template"].contents())
    conversations = []
    for conversation in CONVERSATIONS:
        messages = [{"role": role, "content": content} for role, content in conversation]
        prompt = template.render(messages=messages, add_generation_prompt=True)
        conversations.append([conversation, with_special.encode(prompt).ids])
    return {
        "conversations": conversations,
        "plain": cases(lambda text: tokenizer.encode(text).ids, 9, 100),
        "with_special": cases(lambda text: with_special.encode(text).ids, 10, 0),
    }


def write(name, value):
    (VECTORS / name).write_text(json.dumps(value, separators=(",", ":")) + "\n")


def main():
    byte_level = byte_level_vectors()
    write("tokenizers.json", {"byte_level": byte_level, "composed": composed_vectors(byte_level["model"]),
                              "metaspace": metaspace_vectors(), "sentence_piece": sentence_piece_vectors()})
    if len(sys.argv) > 1:
        write("smollm2_ids.json", shipped_vectors(sys.argv[1]))


if __name__ == "__main__":
    main()
