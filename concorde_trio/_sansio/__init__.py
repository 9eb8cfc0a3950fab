"""The pure cores: decisions without Trio, clock, randomness, logging or I/O."""
