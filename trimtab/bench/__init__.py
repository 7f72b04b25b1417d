"""The benchmark: the policies others run, on traces by a protocol; and the predictive HPA thesis, replayed."""
