_TRIMTAB_COMPLETE=fish_source trimtab | source
