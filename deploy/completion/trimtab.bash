eval "$(trimtab completion bash)"
