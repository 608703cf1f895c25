"""The .def tables, as the checks read them: the rows as they stand, without a compiler."""
import os
import re

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return re.sub(r"/\*.*?\*/", "", f.read(), flags=re.S)


def split_row(args):
    """The top-level arguments of a macro call."""
    out, depth, word, quoted = [], 0, "", False
    for c in args:
        quoted ^= c == '"'
        depth += 0 if quoted else (c == "(") - (c == ")")
        if c == "," and not depth and not quoted:
            out.append(word.strip())
            word = ""
        else:
            word += c
    return out + [word.strip()]


def rows(path, prefix):
    """(macro, arguments) of every line that calls a macro of this prefix."""
    for line in text_of(path).splitlines():
        m = re.match(r"\s*(%s\w*)\s*\((.*)\)\s*$" % prefix, line)
        if m:
            yield m.group(1), split_row(m.group(2))


def hooks():
    """Rows of hooks.def: {macro, family, name, id, version}."""
    found = []
    for macro, a in rows("interpose/hooks.def", "D9_"):
        if macro == "D9_PRIMITIVE":
            found.append({"macro": macro, "family": a[0], "name": a[2], "id": a[2], "version": None})
            continue
        old = macro == "D9_HOOK_OLD"
        version = a[-1].strip('"')
        found.append({"macro": macro, "family": a[0], "id": a[3], "name": a[4] if old else a[3],
                      "version": None if version == "NULL" else version})
    return found


def events():
    return [a[1] for macro, a in rows("format/events.def", "D9_EVENT")]
