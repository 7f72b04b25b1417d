"""custom-hpa (document 002): one Deployment, one query, one small process. Read `loop` first."""
