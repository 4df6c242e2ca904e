"""The faults that can be planted in a C++ source: each changes one place of one line.

As a script: faults.py FILE... prints every fault of the files as `file:line:column kind: before -> after`.
"""

import dataclasses
import re
import sys

KINDS = ("relation", "connective", "sign", "constant", "loop end", "stride", "argument", "barrier")


@dataclasses.dataclass(frozen=True)
class Fault:
    file: str
    line: int  # from 1
    column: int  # from 1
    kind: str
    before: str
    after: str

    def __str__(self):
        return f"{self.file}:{self.line}:{self.column} {self.kind}: {self.before} -> {self.after or 'nothing'}"

    def planted(self, text):
        lines = text.split("\n")
        line = lines[self.line - 1]
        at = self.column - 1
        if line[at : at + len(self.before)] != self.before:
            raise ValueError(f"{self}: the line is another one by now")
        lines[self.line - 1] = line[:at] + self.after + line[at + len(self.before) :]
        return "\n".join(lines)


# Text in which no fault is planted, blanked before anything is looked for. Order matters: a comment may hold a quote,
# and a string what looks like a comment.
_BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_UNTOUCHED_LINE = re.compile(r"\s*(#|template\b|static_assert\b|using\b|namespace\b|typedef\b)")


def code_only(text):
    """The text with comments, literals of characters, directives and declarations of templates as spaces."""
    text = _BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    lines = text.split("\n")
    continued = False
    for i, line in enumerate(lines):
        if continued or _UNTOUCHED_LINE.match(line):
            lines[i] = " " * len(line)
        continued = line.lstrip().startswith("#") and line.endswith("\\") or (continued and line.endswith("\\"))
    return lines


_RELATION = re.compile(r"(?<=\s)(<=|>=|==|!=|<|>)(?=\s)")
_OTHER_RELATION = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_CONNECTIVE = re.compile(r"(?<=\s)(&&|\|\|)(?=\s)")
_SIGN = re.compile(r"(?<=[\w)\]] )([+-])(?= )")
_CONSTANT = re.compile(r"(?<![\w.'])(\d+)(?=(?:[uUlL]+)?(?![\w.']))")
_LOOP_END = re.compile(r"for \([^;]*;[^;&|]* (?:<|<=|>|>=|!=) ([^;&|]+);")
_STRIDE = re.compile(r"(?<![\w.>])((?:[A-Za-z_]\w*(?:\.|->))*\w*stride\w*)(?!\w|\()")
_CALL = re.compile(r"(?<![\w])([A-Za-z_]\w*)\(")
_NO_CALL = {"if", "for", "while", "switch", "return", "catch", "sizeof", "decltype", "alignof", "defined", "operator"}
_DECLARED = re.compile(r"const\s|[\w:]+(<.*>)?[&*]* \w+$|[\w:]+(<.*>)?&+$")
_BARRIER = re.compile(r"^\s*((?:__syncthreads|__syncwarp|__threadfence)\([^;]*\);)")


def _arguments(line, begin):
    """Spans of the arguments of a call whose parenthesis opens before `begin`; None where it goes on below."""
    depth, spans, first = 0, [], begin
    for at in range(begin, len(line)):
        character = line[at]
        if character in "([{":
            depth += 1
        elif character in ")]}":
            if depth == 0:
                return spans + [(first, at)] if at > begin else []
            depth -= 1
        elif character == "," and depth == 0:
            spans.append((first, at))
            first = at + 1
    return None


def _trimmed(line, span):
    text = line[span[0] : span[1]]
    return span[0] + len(text) - len(text.lstrip()), text.strip()


def _argument_faults(line):
    for call in _CALL.finditer(line):
        if call.group(1) in _NO_CALL:
            continue
        spans = _arguments(line, call.end())
        if not spans:
            continue
        arguments = [_trimmed(line, span) for span in spans]
        if any(not text or _DECLARED.match(text) for _, text in arguments):
            continue
        for (at, one), (other_at, other) in zip(arguments, arguments[1:]):
            if one != other:
                yield at, line[at : other_at + len(other)], other + line[at + len(one) : other_at] + one
        for at, text in arguments:
            if text != "{}":
                yield at, text, "{}"
        if len(arguments) > 1:
            end_of_last_but_one = arguments[-2][0] + len(arguments[-2][1])
            at, text = arguments[-1]
            yield end_of_last_but_one, line[end_of_last_but_one : at + len(text)], ""


def faults_of(file, text):
    """Every fault that can be planted in the text, in the order of its lines."""
    lines = code_only(text)
    originals = text.split("\n")
    strides = sorted({match.group(1) for line in lines for match in _STRIDE.finditer(line)})
    for number, line in enumerate(lines, 1):
        found = []  # (column from 0, kind, before, after)
        for match in _RELATION.finditer(line):
            found.append((match.start(), "relation", match.group(), _OTHER_RELATION[match.group()]))
        for match in _CONNECTIVE.finditer(line):
            found.append((match.start(), "connective", match.group(), "||" if match.group() == "&&" else "&&"))
        for match in _SIGN.finditer(line):
            found.append((match.start(), "sign", match.group(), "-" if match.group() == "+" else "+"))
        for match in _CONSTANT.finditer(line):
            value = int(match.group(1))
            found.append((match.start(), "constant", match.group(1), str(value + 1)))
            if value > 0:
                found.append((match.start(), "constant", match.group(1), str(value - 1)))
        for match in _LOOP_END.finditer(line):
            end = match.group(1)
            found.append((match.start(1), "loop end", end, f"{end} - 1"))
            found.append((match.start(1), "loop end", end, f"{end} + 1"))
        for match in _STRIDE.finditer(line):
            if re.search(r"[\w>&*]\s+$", line[: match.start()]) and not line[: match.start()].rstrip().endswith("return"):
                continue  # it is declared here
            for other in strides:
                if other != match.group(1):
                    found.append((match.start(), "stride", match.group(1), other))
        for at, before, after in _argument_faults(line):
            found.append((at, "argument", before, after))
        match = _BARRIER.match(line)
        if match:
            found.append((match.start(1), "barrier", match.group(1), ";"))
        for column, kind, before, after in found:
            # Blanked literals inside an argument come back as they were.
            if kind == "argument" and originals[number - 1][column : column + len(before)] != before:
                continue
            yield Fault(file, number, column + 1, kind, before, after)


def main():
    for file in sys.argv[1:]:
        with open(file, encoding="utf-8") as source:
            for fault in faults_of(file, source.read()):
                print(fault)


if __name__ == "__main__":
    main()
