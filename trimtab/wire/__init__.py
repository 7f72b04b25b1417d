"""Sockets: how trimtab speaks to the API server and to Prometheus; everything here is asynchronous."""
