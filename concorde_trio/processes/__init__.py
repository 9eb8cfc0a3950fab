"""The one place that starts programs: the guard between us and every program, the runner, the sweep."""
