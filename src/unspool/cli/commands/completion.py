"""Print a script that completes commands, options and files in bash, zsh or fish.

bash: unspool completion bash > ~/.local/share/bash-completion/completions/unspool

zsh: unspool completion zsh > FOLDER/_unspool, where FOLDER is a directory listed in $fpath

fish: unspool completion fish > ~/.config/fish/completions/unspool.fish
"""

from typing import Annotated, Literal

from cyclopts import Parameter

from unspool.cli.main import app


def completion(
    shell: Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell that reads the script.")], /
) -> None:
    """Run `unspool completion`."""
    print(app.generate_completion(prog_name="unspool", shell=shell), end="")
