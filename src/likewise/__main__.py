"""python -m likewise"""

from likewise.cli import main

main()
