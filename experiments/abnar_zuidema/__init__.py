"""Do attention rollout and flow rank tokens as blank-out does? Replication of Abnar and Zuidema 2020, table 1."""
