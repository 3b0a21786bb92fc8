"""Options that several commands have in common."""

from typing import Annotated, TypeAlias

from cyclopts import Group, Parameter

Flag: TypeAlias = Annotated[bool, Parameter(negative="")]
"""Without a second option that takes the first one back."""

TEXT = Group("Text", sort_key=1)
TIME = Group("Time", sort_key=2)
NETWORK = Group("Network (what is not given is chosen for the text and the time)", sort_key=3)
TRAINING = Group("Training (what is not given is chosen for the text and the time)", sort_key=4)
OUTPUT = Group("Output", sort_key=5)
