"""Where the worker and the sessions meet: a turn begins only inside a run, and input from outside takes its place (SES-20)."""
