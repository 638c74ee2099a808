"""Do rollout and flow rank tokens as blank-out (masking a token) does? Abnar and Zuidema 2020, table 1, replicated."""
