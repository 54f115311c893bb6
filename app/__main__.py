"""`python -m app` opens the window."""

from app.main import main

raise SystemExit(main())
