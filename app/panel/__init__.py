"""The live panel: what speculation does right now, and why."""
