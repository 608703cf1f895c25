"""The shapes of JSON documents as docs/CONTRACT.md writes them, and whether a document has the shape.

    {a, b|null, c:[{d_ns}], kind: x|y|z, stack}      an object with exactly these keys

`b|null` may be null, `kind` is one of the words, a key that is itself the name of a shape has that shape, `a|b` where both are keys is
one of the two.  Keys ending in _ns are whole numbers; addresses are "0x..."; what is in brackets behind a key is a remark.
"""
import os
import re

import harness
from harness import check

NUMBERS = set("pid tid ppid count waits errors segments bytes polls line dropped_events torn_blocks lo hi events disk_usage_bytes".split())
ADDRESSES = {"object", "offset"}
LISTS = {"findings": "finding", "worst_spans": "span", "spans": "span", "locks": "locks"}
PLACE = re.compile(r"\b(N|PID|MODULE_INDEX|ID)\b")  # where a number stands
TOKEN = re.compile(r'\s*("[^"]*"|[A-Za-z_][\w-]*(?::N)?|\.\.\.\w+|\([^()]*\)|[][{}:,|])')


class Shape:
    """any, or an object of keys, or a list of a shape, or one of some words."""

    def __init__(self, keys=None, items=None, words=None, name=None):
        self.keys, self.items, self.words, self.name = keys, items, words, name


class Parser:
    def __init__(self, text):
        self.words = [w for w in self.tokens(text) if not w.startswith("(")]

    @staticmethod
    def tokens(text):
        at = 0
        while at < len(text) and (m := TOKEN.match(text, at)):
            yield m.group(1)
            at = m.end()

    def next(self, want=None):
        word = self.words.pop(0)
        check(want in (None, word), "docs/CONTRACT.md: %r where %r is expected, before %s" % (word, want, self.words[:5]))
        return word

    def object(self):
        self.next("{")
        keys = {}
        while self.words[0] != "}":
            names, shape = [self.next()], Shape()
            while self.words[0] == "|":
                self.next()
                names.append(self.next())
            if self.words[0] == ":":
                self.next()
                shape = self.value()
            while self.words[0] == "|":
                self.next()
                names.append(self.next())
            maybe_null = "null" in names
            names = tuple(n for n in names if n != "null")
            keys[names] = (shape, maybe_null)
            if self.words[0] == ",":
                self.next()
        self.next("}")
        return Shape(keys=keys)

    def value(self):
        if self.words[0] == "{":
            shape = self.object()
            free = [n for names in shape.keys for n in names if n.startswith("...") or n == "KIND"]
            return Shape(name="hists" if free == ["KIND"] else "measured") if free else shape
        if self.words[0] == "[":
            self.next()
            item = self.value() if self.words[0] != "]" else Shape()
            self.next("]")
            return Shape(items=item)
        words = [self.next()]
        while self.words[0] == "|" and self.words[1] != "null":
            self.next()
            words.append(self.next())
        return Shape(words=words) if len(words) > 1 or words[0].startswith('"') else Shape(name=words[0])


def shapes():
    """{name: shape}: `frame`, `span`, `d9.report/1` and the others."""
    with open(os.path.join(harness.ROOT, "docs", "CONTRACT.md"), encoding="utf-8") as f:
        text = f.read().split("## JSON")[1].split("\n## ")[0]
    found = {}
    for m in re.finditer(r"`([\w./]+)` (?=\{)", text):
        found.setdefault(m.group(1), Parser(text[m.end():]).object())  # the event `span` comes later, under the same name
    return found


class Judge:
    """Collects what is wrong with a document."""

    def __init__(self):
        self.shapes = shapes()
        self.wrong = []

    def document(self, name, doc):
        check(next(iter(doc)) == "schema" and doc["schema"] == name, "the first key is %s" % list(doc.items())[:1])
        self.value(name, {k: v for k, v in doc.items() if k != "schema"}, self.shapes[name])
        check(not self.wrong, "docs/CONTRACT.md says otherwise:\n" + "\n".join(self.wrong[:10]))

    def named(self, where, key, value, shape):
        """A shape that the key or the contract's word names."""
        name = shape.name or key
        if name == "measured":
            self.wrong += ["%s.%s: %r" % (where, k, v) for k, v in value.items() if not isinstance(v, (int, float, type(None)))]
            return
        if name == "stack":
            self.value(where, value, Shape(items=self.shapes["frame"]))
        elif name == "hists":
            for kind, hist in value.items():
                self.value("%s.%s" % (where, kind), dict(hist, threads=[]), self.shapes["d9.hist/1"])
        elif name == "task" and isinstance(value, dict):  # elsewhere it is a number
            self.value(where, value, self.shapes["d9.tasks/1"].keys[("tasks",)][0].items)
        elif name in LISTS:
            target = self.shapes["d9.locks/1"].keys[("locks",)][0].items if name == "locks" else self.shapes[LISTS[name]]
            self.value(where, value, Shape(items=target))
        elif name in self.shapes:
            self.value(where, value, self.shapes[name])
        elif not self.scalar(key, value):
            self.wrong.append("%s: %r" % (where, value))

    @staticmethod
    def scalar(key, value):
        if key.endswith("_ns") or key in NUMBERS:
            return isinstance(value, int) and not isinstance(value, bool)
        if key in ADDRESSES:
            return isinstance(value, str) and re.fullmatch(r"0x[0-9a-f]+", value)
        if key == "start":
            return re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z", value)
        return isinstance(value, (str, int, float, list))

    def value(self, where, value, shape):
        if shape.keys is not None:
            self.object(where, value, shape)
        elif shape.items is not None:
            check(isinstance(value, list), "%s is no list: %r" % (where, value))
            for v in value:
                self.value(where + "[]", v, shape.items)
        elif shape.words is not None:
            if not any(re.fullmatch(PLACE.sub(r"\\d+", w.strip('"')), str(value)) for w in shape.words):
                self.wrong.append("%s: %r is none of %s" % (where, value, shape.words))
        elif shape.name and value is not None:
            self.named(where, where.rsplit(".", 1)[-1].rstrip("[]"), value, shape)

    def object(self, where, value, shape):
        check(isinstance(value, dict), "%s is no object: %r" % (where, value))
        wanted = {n for names in shape.keys for n in names}
        self.wrong += ["%s: has %s, which is not told" % (where, k) for k in sorted(set(value) - wanted)]
        for names, (sub, maybe_null) in shape.keys.items():
            there = [n for n in names if n in value]
            if len(there) != 1:
                self.wrong.append("%s: lacks %s" % (where, "|".join(names)))
                continue
            key, at = there[0], "%s.%s" % (where, there[0])
            if value[key] is None:  # "not known = null"; what names its thread or time is always known
                if not maybe_null and key in ("t_ns", "tid", "hook", "kind", "dur_ns", "count", "id", "state"):
                    self.wrong.append("%s: null" % at)
            elif sub.keys is not None or sub.items is not None or sub.words is not None:
                self.value(at, value[key], sub)
            else:
                self.named(at, key, value[key], sub)
