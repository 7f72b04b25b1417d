eval "$(_TRIMTAB_COMPLETE=bash_source trimtab)"
