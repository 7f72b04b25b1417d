"""python -m trimtab"""

from trimtab.cli import main

main(prog_name="trimtab")
