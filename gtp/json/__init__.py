"""KataGo's JSON analysis engine: lines of JSON in, lines of JSON out, many positions at once.

Sources: KataGo, docs/Analysis_Engine.md, and what its version 1.17.2 answers; the texts of its errors and warnings are
part of the protocol, since clients show them and some compare them.
"""
