"""What is measured, a module an idea. Each suite is called with a ``Bench`` and gives figures."""
