trimtab completion fish | source
