"""`pacenote doctor --self-test`: does this installation work on this machine? One report, one exit code.

In the order data walks through: `check` (what a check is) -> the checks (`installation`, `machine`, `pair`) -> `suite`
(which of them, and those of the window) -> `child` (each runs where a crash cannot take the report along) -> `report`.

For who packages the program: an entry that calls `engine.cli.main.main()` or `app.main.main()` understands
`--self-test` as its first argument. Checks run in a child: `launch.own_command` says how it is started. The window's
checks are found by name (`suite.WINDOW`), so a packager that follows imports has to be told of `app`.
"""
