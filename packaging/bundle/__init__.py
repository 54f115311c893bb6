"""What the bundles for macOS and Linux share: which packages they hold, the licences of these, what must be inside.

The folder packaging/ is on the search path, not its parent: PYTHONPATH=packaging python -m bundle.MODULE
"""
