"""Rows, objects, secrets, and the guarded way out: everything Posthorn keeps or fetches. Knows nothing of HTTP answers."""
