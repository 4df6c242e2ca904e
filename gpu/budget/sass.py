"""Machine code as nvdisasm prints it (nvdisasm -c): functions, basic blocks, and the cheapest way through them."""

import collections
import heapq
import re
import sys

# Pipe | mnemonics that go through it, by their beginning. The longest beginning that fits decides.
PIPES = {
    "fma": "FFMA FADD FMUL FFMA2 FADD2 FMUL2 IMAD IDP HFMA2 HADD2 HMUL2",
    "alu": "IADD IADD3 IADD4 VIADD VIADDMNMX VIMNMX IMNMX ISETP ISCADD LEA LOP3 LOP PLOP3 SHF SHL SHR PRMT SEL FSEL "
           "FSETP FSET "
           "FMNMX FMNMX3 HMNMX2 HSETP2 HSET2 VOTE P2R R2P IABS BMSK SGXT FCHK FSWZADD MOV CSEL VHMNMX",
    "conversion": "F2I F2F I2F I2I F2FP I2FP MUFU POPC FLO BREV FRND F2IP",
    "fp64": "DADD DFMA DMUL DSETP DMNMX",
    "memory": "LDG STG LDS STS LDL STL LD ST ATOM ATOMS ATOMG RED REDUX REDS LDGSTS LDSM SHFL LDC MATCH CCTL UBLKCP",
}
PIPE_NAMES = [*PIPES, "other"]  # other: branches, barriers, the uniform datapath, moves of special registers
_pipe_of = {name: pipe for pipe, names in PIPES.items() for name in names.split()}

_LABEL = re.compile(r"^\s*(\S+):\s*$")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@(!?U?P\w+)\s+)?([A-Z][\w.]*)\s*(.*?)\s*;")
_TARGET = re.compile(r"`\((\S+?)\)")
_WIDTH = {"U8": 1, "S8": 1, "U16": 2, "S16": 2, "64": 8, "128": 16, "256": 32}


def pipe_of(opcode):
    return _pipe_of.get(opcode.split(".")[0], "other")


def loaded_bytes(opcode):
    """Of one thread; 0 for what loads nothing from global memory."""
    name, *modifiers = opcode.split(".")
    if name != "LDG":
        return 0
    return next((_WIDTH[m] for m in modifiers if m in _WIDTH), 4)


class Block:
    def __init__(self):
        self.opcodes = []
        self.next = []  # indices of blocks; none: the thread ends, or the function returns
        self.leaves = False
        self.calls = []  # labels


class Function:
    """The blocks of one kernel, functions that it calls among them. Block 0 is where it begins."""

    def __init__(self, name, lines):
        self.name = name
        self.blocks = []
        label_block = {}
        branches = []  # (block, target label, may fall through)
        current = None

        def begin():
            self.blocks.append(Block())
            return len(self.blocks) - 1

        for line in lines:
            label = _LABEL.match(line)
            if label:
                at = begin()
                if current is not None:
                    self.blocks[current].next.append(at)
                current = at
                label_block[label.group(1)] = at
                continue
            found = _INSTRUCTION.match(line)
            if not found:
                continue
            guard, opcode, operands = found.groups()
            if current is None:
                current = begin()
            block = self.blocks[current]
            if opcode == "NOP":
                continue
            block.opcodes.append(opcode)
            base = opcode.split(".")[0]
            target = _TARGET.search(operands)
            if base == "CALL" and target:
                block.calls.append(target.group(1))
            if base not in ("BRA", "EXIT", "RET", "BRX", "JMP", "KILL"):
                continue
            conditional = guard is not None and guard != "PT" or base == "BRA" and operands.split(",")[0].strip()[
                    :1] in "!UP"
            if base in ("BRA", "JMP"):
                branches.append((current, target.group(1), conditional))
            elif base == "BRX":
                raise ValueError(f"{name}: a jump by a table, which this does not follow: {line.strip()}")
            else:
                block.leaves = True
            after = begin()
            if conditional:
                block.next.append(after)
            current = after
        for block, label, _ in branches:
            self.blocks[block].next.append(label_block[label])
        self._previous = [[] for _ in self.blocks]
        for at, block in enumerate(self.blocks):
            for after in block.next:
                self._previous[after].append(at)
        self._find_loops()
        callees = {label for block in self.blocks for label in block.calls}
        self._mix_of_call = {label: self._cheapest_call(label_block[label]) for label in sorted(callees)}
        self.mixes = [self._mix(block) for block in self.blocks]

    def _mix(self, block):
        mix = collections.Counter(block.opcodes)
        for label in block.calls:
            mix += self._mix_of_call.get(label, collections.Counter())
        return mix

    def _cheapest_call(self, entry):
        self.mixes = [collections.Counter(block.opcodes) for block in self.blocks]
        return self.cheapest_path(entry=entry) or collections.Counter()

    def _find_loops(self):
        """{first block of a loop: blocks that jump back to it}: the edges that a depth-first walk finds leading
        back."""
        self.loops = {}
        state = [0] * len(self.blocks)  # 1: on the walk's own path, 2: done
        for root in range(len(self.blocks)):
            if state[root]:
                continue
            state[root] = 1
            stack = [(root, iter(self.blocks[root].next))]
            while stack:
                at, rest = stack[-1]
                after = next(rest, None)
                if after is None:
                    state[at] = 2
                    stack.pop()
                elif state[after] == 1:
                    self.loops.setdefault(after, set()).add(at)
                elif state[after] == 0:
                    state[after] = 1
                    stack.append((after, iter(self.blocks[after].next)))

    def _body(self, start, ends):
        """The blocks of a loop: those from which it is left again for its start only."""
        body = {start}
        rest = list(ends)
        while rest:
            block = rest.pop()
            if block not in body:
                body.add(block)
                rest += self._previous[block]
        return body

    def cheapest_path(self, required=(), avoided=(), entry=0):
        """Opcodes of the way from the entry to the end of the thread that issues the fewest instructions: a Counter, or
        None.

        No block comes twice on it. required: {opcode pattern: least number on the way}; avoided: opcode patterns.
        """
        ends = {i for i, block in enumerate(self.blocks) if block.leaves}
        return self._search(entry, ends, range(len(self.blocks)), dict(required), avoided)

    def cheapest_loop(self, required, avoided=()):
        """The same of one turn of the innermost loop that has what is required."""
        bodies = [(start, ends, self._body(start, ends)) for start, ends in self.loops.items()]
        for start, ends, body in sorted(bodies, key=lambda loop: len(loop[2])):
            turn = self._search(start, ends, body, dict(required), avoided)
            if turn:
                return turn
        return None

    def _search(self, start, ends, body, required, avoided):
        shunned = [re.compile(p) for p in avoided]
        patterns = [re.compile(p) for p in required]
        goal = tuple(required.values())
        open_blocks = {b for b in body if not any(p.match(opcode) for p in shunned for opcode in self.mixes[b])}
        cost = {b: sum(self.mixes[b].values()) for b in open_blocks}
        gains = {
            b: tuple(sum(n for opcode, n in self.mixes[b].items() if p.match(opcode)) for p in patterns)
            for b in open_blocks
        }
        if start not in open_blocks or any(sum(g[i] for g in gains.values()) < n for i, n in enumerate(goal)):
            return None

        def add(have, block):
            return tuple(min(n, h + g) for h, g, n in zip(have, gains[block], goal))

        first = (start, add((0,) * len(goal), start))
        least = {first: cost[start]}
        before = {first: None}
        queue = [(least[first], first)]
        while queue:
            so_far, state = heapq.heappop(queue)
            block, have = state
            if so_far > least[state]:
                continue
            if block in ends and have == goal:
                mix = collections.Counter()
                while state is not None:
                    mix += self.mixes[state[0]]
                    state = before[state]
                return mix
            for after in self.blocks[block].next:
                if after not in open_blocks or block in self.loops.get(after, ()):
                    continue
                step = (after, add(have, after))
                if so_far + cost[after] < least.get(step, sys.maxsize):
                    least[step] = so_far + cost[after]
                    before[step] = state
                    heapq.heappush(queue, (least[step], step))
        return None


def functions(text):
    """The kernels of what nvdisasm -c printed: {symbol: Function}, made when they are asked for."""
    found = {}
    for part in text.split("\n.text.")[1:]:
        name, _, body = part.partition(":\n")
        end = body.find("\n\t.section")
        found[name] = body[:end] if end >= 0 else body
    return found
