"""Prints the lines that make a shell complete commands, flags, models and rules.

bash:  eval "$(pkd completion bash)"     in ~/.bashrc
zsh:   eval "$(pkd completion zsh)"      in ~/.zshrc, after compinit
fish:  pkd completion fish | source      in ~/.config/fish/config.fish
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from pkd.cli.commands import add_common, find_command, list_commands
from pkd.cli.output import print_json
from pkd.model import ModelError
from pkd.words.models import FlagParser

HELP = "complete words in bash, zsh or fish"
SCRIPTS = {
    "bash": """_pkd() {
    local IFS=$'\\n'
    COMPREPLY=($(pkd completion --words "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _pkd pkd""",
    "zsh": """_pkd() {
    local -a found
    found=(${(f)"$(pkd completion --words "${(@)words[2,CURRENT]}" 2>/dev/null)"})
    compadd -a found || _files
}
compdef _pkd pkd""",
    "fish": """function __pkd_complete
    set -l words (commandline -opc) (commandline -ct)
    pkd completion --words $words[2..-1] 2>/dev/null
end
complete -c pkd -a '(__pkd_complete)'""",
}
RULES_FLAGS, POLICY_WORDS = ("--optimism", "--rules", "--agents"), ("models", "agents")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=sorted(SCRIPTS), metavar="SHELL")
    parser.add_argument("--words", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.words is not None:
        for word in complete(args.words):
            print(word)
        return 0
    if args.shell is None:
        raise ModelError(f"no shell was named; expected one of {', '.join(sorted(SCRIPTS))}")
    if args.json:
        print_json({"shell": args.shell, "script": SCRIPTS[args.shell]})
    else:
        print(SCRIPTS[args.shell])
    return 0


def complete(words: list[str]) -> list[str]:
    """What may stand in the place of the last word.

    >>> complete(["lat"]), complete(["plan", "riv"]), complete(["learn", "gambler", "--unt"])
    (['latency'], ['riverswim'], ['--until'])
    """
    *before, start = words or [""]
    return sorted(word for word in _list_words(before, start) if word.startswith(start))


def _list_words(before: list[str], start: str) -> Iterable[str]:
    from pkd.problem import names, registered

    if not before:
        return list_commands()
    if before[0] not in list_commands():
        return ()
    parser = FlagParser(prog=f"pkd {before[0]}", add_help=True)
    find_command(before[0]).configure(parser)
    add_common(parser)
    if start.startswith("-"):
        return parser.list_flags()
    last = next((a for a in parser._actions if before[-1] in a.option_strings), None)
    if last is not None and last.nargs != 0:
        if before[-1] in RULES_FLAGS or last.choices is None:
            from pkd.rules import RULES

            both = [*RULES, *registered("pkd.agents")]
            return {"--optimism": list(RULES)}.get(
                before[-1], both if before[-1] in RULES_FLAGS else []
            )
        return [str(choice) for choice in last.choices]
    places = [action for action in parser._actions if not action.option_strings]
    if before[0] == "agents":
        from pkd.rules import RULES

        return [*RULES, *registered("pkd.agents")]
    takes_model = any(action.metavar == "MODEL" for action in places) or before[0] == "models"
    if takes_model:
        return names()
    return [str(choice) for action in places for choice in action.choices or ()]
