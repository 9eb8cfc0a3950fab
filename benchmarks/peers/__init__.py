"""Other queues, each in an environment of its own, doing the same work beside this one."""
