"""concorde_trio runs many AI-agent tasks in parallel on Trio, without letting them harm each other."""
