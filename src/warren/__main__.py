"""``python -m warren``."""

from warren.cli.main import main

raise SystemExit(main())
