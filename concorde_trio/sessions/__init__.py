"""Sessions: one event loop each, held to its leases; the seams to models, tools, hosts and stores."""
