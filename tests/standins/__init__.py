"""Stand-ins for the social networks: real HTTP servers on loopback that refuse what the real network refuses."""
