"""live: the operator. Its rooms are the verbs of a tick: look, measure, headroom, act, tell; `tick` is the program."""
