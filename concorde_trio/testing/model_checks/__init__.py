"""The sentences that every model client holds to, by what they are about."""
