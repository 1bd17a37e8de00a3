"""What an episode of a model with an unknown delay law shows, read from its moves."""

from pkd_delay.augmented import TRAN


def steps_shown(model, episode):
    """The step at which each state was shown."""
    step, shown_at = 1, []
    for move in episode:
        step += move.action is not None
        if model.read(move.x, move.y)[3] == TRAN:
            shown_at.append(step)
    return shown_at
