"""python python/tests/explained.py [--faults N] [--seed S] [--part I/N] [--blind]: what the audit prints of blind
planted faults beside the truth about them, and how it is judged: right (site and value), partly (site), wrong (an
explanation that names neither), told (a description, no explanation) or missed. --blind: each is explained a second
time without the explanation that was printed, as a fault is that no rule was written for; whatever is printed then of
another site is wrong."""

import argparse
import os
import random
import re
import statistics
import sys
import time

sys.path.insert(0, os.environ.get("PYTHONPATH", ""))

#: Written down before any explanation was looked at. (kind, fault): (words of the site, words of the value; regular
#: expressions). What
#: each does in full is composed in planted_faults.py.
TRUTH = {
    ("filter", "radix top-k stops after the first digit of 11 bits"): ("top_k", "11 bits|by (index|id)|bucket"),
    ("filter", "the scan for top_p has no carry between tiles of 512"): ("top_p", "512"),
    ("filter", "token indices in the sort are 16 bits"): ("ids", "16 bits|65,?536"),
    ("filter", "tokens are ranked by bfloat16 keys"): ("sort|rank|logits", "bfloat16"),
    ("filter", "top_k is kept in a byte"): ("top_k", "8 bits|modulo 256|byte|256 -> off"),
    ("filter", "top_k keeps one token more"): ("top_k", "one (token )?more|itself plus 1"),
    ("filter", "top_p's shifted mask runs on into the next row"): ("top_p", "row before|next row"),
    ("sample", "Gumbel noise is made of bfloat16 uniforms"): ("random numbers|race|noise", "8 bits|bfloat16"),
    ("sample", "a top_p of 1 leaves the slot's old top_p"): ("top_p", "call|left"),
    ("sample", "every second call uses the noise of the call before"): ("random numbers", "call before|earlier call"),
    ("sample", "min_p compares probabilities from before the temperature"): ("min_p", "before the temperature"),
    ("sample", "min_p's bound is of the renormalised top, its tokens are not"): ("min_p",
            "bound.*largest.*after|divided"),
    ("sample", "random bits are read as a signed integer"): ("random numbers", "token 0|below 0|negative"),
    ("sample", "ranks are returned for tokens where min_p is on"): ("rank", "min_p"),
    ("sample", "row 0's min_p serves all rows"): ("min_p", "first"),
    ("sample", "rows 128 apart share a seed"): ("random numbers", "128"),
    ("sample", "rows from 1024 on read the parameters of row modulo 1024"): ("top_k|top_p|temperature|min_p|parameters",
            "modulo 1,?024"),
    ("sample", "rows without top_k are cut to the batch's largest top_k"): ("top_k", "largest"),
    ("sample", "scaled logits are bfloat16"): ("logits", "bfloat16"),
    ("sample", "softmax saturates at scaled logits of 88"): ("logits", "88"),
    ("sample", "temperature is applied twice to rows with top_k"): ("temperature", "twice.*top_k|\\^ ?2|squared"),
    ("sample", "the index of row and token together is a float32"): ("index|ids", "float32|2\\^24"),
    ("sample", "the last B % 8 rows have their filters off"): ("filter|top_k|top_p|min_p",
                                                               "modulo 8|last .*rows|from \\d+ on"),
    ("sample", "the search over the sorted tokens never ends on the last kept one"): ("last|least likely", "kept"),
    ("sample", "the sort takes float bits as signed integers"): ("sort", "bits"),
    ("sample", "the uniform is linear in the seed"): ("random numbers|seeds", "seeds"),
    ("sample", "top_k is that of the row before"): ("top_k", "before"),
    ("sample", "top_p's threshold search ends after eight halvings"): ("top_p", "8 halvings"),
    ("sample", "two-stage top_k keeps 32 candidates of each tile of 1024"): ("top_k|tile", "32"),
    ("sample", "where all rows have one top_k, row 0's top_p serves all"): ("top_p", "first"),
    ("verify", "a greedy request's recovered token is the largest of softmax minus draft probabilities"): ("recovered",
            "greedy.*residual|residual.*greedy"),
    ("verify", "a recovered token's id lacks the offset of its vocabulary tile"): ("recovered", "8,?192"),
    ("verify", "a request without drafts takes its token from the next request's first row"): ("row|bonus",
            "without drafts|next|late"),
    ("verify", "acceptance coins read at the request's own stride"): ("random numbers|coins", "request|draft"),
    ("verify", "acceptance compares the uniform with the running product of the ratios"): ("accept", "product"),
    ("verify", "all requests with top-k are cut at the largest top-k of the batch"): ("top_k", "largest"),
    ("verify", "an empty draft takes a row of draft probabilities"): ("q ", "without drafts"),
    ("verify", "bonus drawn with the last draft's acceptance coin"): ("bonus", "coin"),
    ("verify", "bonus emitted after the last draft was rejected"): ("emit|token", "behind a recovered|last draft"),
    ("verify", "bonus rows have the next request's parameters"): ("bonus", "next"),
    ("verify", "division by q left out when all requests have at most one draft"): ("q ", "1 .*draft|one draft"),
    ("verify", "draft ids held in 16 bits"): ("draft", "16 bits"),
    ("verify", "draft probabilities are cut to the target's kept tokens and normalised again"): ("q ",
            "cut|target's tokens"),
    ("verify", "draft probabilities tempered by the target's temperature"): ("q ", "temper"),
    ("verify", "draft probability gathered at the next draft's token"): ("q ", "next draft's token"),
    ("verify", "filters are applied to a request's first row alone"): ("filter", "first row"),
    ("verify", "filters not applied to bonus rows"): ("bonus", "filter"),
    ("verify", "filters skipped when any request is greedy"): ("filter", "greedy|temperature 0"),
    ("verify", "first request decides whether the batch is greedy"): ("temperature|greedy", "first"),
    ("verify", "greedy requests' bonus drawn at temperature 1 beside random ones"): ("bonus", "greedy|temperature"),
    ("verify", "last draft never read"): ("emits", "fewer|bonus|tokens a step"),
    ("verify", "n-gram drafts always verified greedily"): ("greedy|likeliest", "without (draft )?probabilities"),
    ("verify", "parameters are expanded to 32 rows a request at most"): ("greedy|temperature|parameters", "32"),
    ("verify", "request without drafts reads the row before its own"): ("row|bonus", "without drafts|before|early"),
    ("verify", "requests sorted by length put back with the wrong permutation"): ("sorted", "wrong permutation"),
    ("verify", "row offsets restart every 1024 requests"): ("row", "modulo 1,?024"),
    ("verify", "the bonus token is drawn by the coin that accepted the last draft"): ("bonus", "coin"),
    ("verify", "the map from rows to requests is kept while the numbers of rows and requests stay the same"):
    ("parameter|temperature|filter|top_k|top_p|row", "call|left"),
    ("verify", "the zero put at an n-gram draft for its recovered token is still in the target row when the draft is "
               "tested"): ("no draft|drafts", "without (draft )?probabilities"),
    ("verify", "tokens masked in a request's first row are masked in all its rows"): ("mask", "first row"),
}


def judged(text, rule, truth):
    if not text and not rule:
        return "missed"
    if not rule:
        return "told"
    site, value = (re.search(words, text) for words in truth)
    return "right" if site and value else "partly" if site or value else "wrong"


class Twice:
    """`explained` with what it printed, and, where `again`, what it would print without that."""

    def __init__(self, explained, again):
        self.explained, self.again, self.second, self.seconds = explained, again, None, 0.0

    def __call__(self, run, judgement, others, filter_order=None):
        first = self.explained(run, judgement, others, filter_order)
        begin = time.process_time()
        if self.again and first.words:
            self.second = self.explained(run, judgement, others, filter_order, left_out=first.names)
        self.seconds = time.process_time() - begin
        return first


def main():
    from planted_faults import FAULTS

    from draftproof import audit_callable
    from draftproof.callable.facts import failing

    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--faults", type=int, default=len(TRUTH))
    parser.add_argument("--named", default="", help="those whose names have it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", default="0/1", metavar="I/N", help="of N parts the I-th, from 0 on")
    parser.add_argument("--blind", action="store_true")
    given = parser.parse_args()
    chosen = random.Random(given.seed).sample(sorted(TRUTH), given.faults)
    part, parts = map(int, given.part.split("/"))
    chosen = [(kind, fault) for kind, fault in chosen[part::parts] if given.named in fault]
    verdicts, blind, seconds, lengths = [], [], [], []
    for kind, fault in chosen:
        plain, twice, begin = failing.explained, Twice(failing.explained, given.blind), time.process_time()
        failing.explained = twice
        found = audit_callable(FAULTS[kind][fault](), kind=kind, profile="quick", failures_max=1)
        spent, failing.explained = time.process_time() - begin - twice.seconds, plain
        failure = found.failures[0] if found.failures else None
        rule, text = (failure.rule, failure.suspect) if failure else ("", found.but)
        verdict = judged(text, rule or found.but, TRUTH[kind, fault])
        verdicts.append(verdict)
        seconds.append(spent)
        lengths.append(len(found.sentence))
        print(f"{verdict:6} {spent:4.0f} s  {kind}, {fault}\n       | {found.sentence}", flush=True)
        if given.blind and twice.second is not None:
            blind.append(judged(str(twice.second), twice.second.words, TRUTH[kind, fault]) if twice.second.words
                         else "told")
            print(f"       | without it, {blind[-1]}: {twice.second or 'nothing'}", flush=True)

    def counts(of):
        return ", ".join(f"{of.count(verdict)} {verdict}" for verdict in ("right", "partly", "wrong", "told", "missed"))

    print(f"{len(chosen)} faults: "
          f"{counts(verdicts)}{f'; without what was printed: {counts(blind)}' if given.blind else ''}"
          f"; median {statistics.median(seconds):.0f} s, at most {max(seconds):.0f} s of CPU; median sentence "
          f"{statistics.median(lengths):.0f} characters")


if __name__ == "__main__":
    main()
