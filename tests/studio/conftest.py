"""One studio for the tests that do not change it, and a finished run of the same options made without it."""

import pytest

from studio_client import SMALL, TEXT, studio
from unspool.data.text.source import text_source
from unspool.tasks.language.run import run
from unspool.training.events import RunConfig, StepDone, TrainingPlanned

STEPS = 60


@pytest.fixture(scope="session")
def hashes():
    """The hash of the parameters after each update of a run without the studio."""
    found, model = {}, None
    for event in run(RunConfig(given=SMALL_GIVEN | {"steps": STEPS}, seed=3), texts=text_source(TEXT)):
        match event:
            case TrainingPlanned(made):
                model = made
                found[0] = model.parameters.sha256
            case StepDone():
                found[event.step] = model.parameters.sha256
    return found


SMALL_GIVEN = {name: value for name, value in SMALL.items() if name != "seed"}


@pytest.fixture(scope="session")
def ended(tmp_path_factory):
    """A studio with a run that has ended."""
    with studio(tmp_path_factory.mktemp("studio")) as client:
        client.new(steps=STEPS)
        client.wait("ended")
        yield client
