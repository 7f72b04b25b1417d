"""custom-hpa (nanit custom-hpa): one Deployment, one query, one small process. Read `loop` first."""
