"""The agent server: which run is asking, and what operators see and do, over HTTP (SRV, TAG-3).

``serving.serve`` runs an app, ``app.create_app`` makes one, ``app.install`` puts the routes into the user's own, and
``attribution.current_run`` names the run that a request came from. Nothing is imported here: commands read
``endpoint`` and must start fast.
"""
