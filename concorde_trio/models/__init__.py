"""Models: clients of the provider APIs, and one that plays a script. Each is a ``sessions.model.Model``."""
