"""Do rollout and flow rank tokens as blanking them out does? Abnar and Zuidema 2020, table 1, on this encoder."""
