"""The benchmark: the policies others run, on traces by a protocol; and the evaluation of document 003, replayed."""
