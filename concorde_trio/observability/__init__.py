"""What people watch a worker with: numbers for Prometheus, spans for OpenTelemetry.

Both are told what has happened, and decide nothing. Without their library, and until somebody asks for them, they cost nothing.
"""
