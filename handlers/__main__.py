"""`python -m handlers` is `posthorn`, also from a checkout."""

from handlers.cli import main

main()
