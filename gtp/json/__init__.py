"""KataGo's JSON analysis engine: lines of JSON in, lines of JSON out, many positions in parallel.

Sources: KataGo, docs/Analysis_Engine.md, and the answers of version 1.17.2. Texts of errors and warnings are part of
the protocol, since clients show and sometimes compare them.
"""
