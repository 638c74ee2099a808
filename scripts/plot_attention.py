"""Draw a run's figures, or one sentence: python scripts/plot_attention.py run=outputs/demo text='...' pronoun=it."""

from anaphora.cli import run_command

if __name__ == "__main__":
    run_command("plot_attention")
