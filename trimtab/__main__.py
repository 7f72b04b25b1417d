"""python -m trimtab"""

from trimtab.cli import main

if __name__ == "__main__":  # not in the processes that the operator spawns
    main(prog_name="trimtab")
