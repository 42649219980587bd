"""The networks: their limits as data, their connectors, and the publisher that drives them."""
