"""``python -m batchspec``."""

from batchspec.cli import main

if __name__ == "__main__":
    main()
