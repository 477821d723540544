#!/usr/bin/env python3
"""Computes the occurrences of schedules without the code under test.

croniter gives the local times of a cron expression, without clock changes. zoneinfo converts local times to
instants. The rule about clock changes is implemented here a second time.

    python3 -m venv venv && venv/bin/pip install croniter
    venv/bin/python crates/workflow/tests/oracle/oracle.py

writes two files into the folder of this script. `decades.txt` has the count and a hash of the occurrences for
each zone and rule; it takes half an hour. `changes.txt` has all occurrences around certain clock changes. The
argument `changes` or `decades` writes only that file.

    venv/bin/python crates/workflow/tests/oracle/oracle.py --differences

prints the occurrences of croniter around the same changes, when it knows the zone.
"""

import calendar
import hashlib
import sys
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import TZPATH, ZoneInfo

from croniter import croniter

# Zones for which all rules are computed. They have clock changes of all kinds.
ZONES = """
    Europe/Berlin Europe/London Europe/Dublin Europe/Moscow Europe/Istanbul Africa/Cairo Africa/Casablanca
    America/New_York America/St_Johns America/Sao_Paulo America/Havana America/Caracas Asia/Beirut Asia/Gaza
    Asia/Tehran Asia/Kathmandu Asia/Pyongyang Australia/Lord_Howe Pacific/Apia Pacific/Chatham
    Antarctica/Troll UTC
""".split()
# Zones for which only the rules with fewer occurrences are computed.
MORE_ZONES = """
    Europe/Chisinau Europe/Simferopol Africa/Juba Africa/El_Aaiun America/Santiago America/Asuncion
    America/Nuuk America/Adak America/Port-au-Prince Asia/Amman Asia/Damascus Asia/Kolkata Asia/Tokyo
    Australia/Sydney Australia/Eucla Pacific/Fakaofo Pacific/Norfolk Pacific/Easter Antarctica/Casey
""".split()
# A rule with more occurrences than this is skipped for these zones.
DENSE = 10_000

# The first year, and the year after the last.
LONG, DECADE, YEAR = (2011, 2023), (2011, 2021), (2011, 2012)


def last_weekday(day):
    last = calendar.monthrange(day.year, day.month)[1]
    while date(day.year, day.month, last).weekday() > 4:
        last -= 1
    return day.day == last


def first_week_or_last_monday(day):
    is_last_monday = day.weekday() == 0 and (day + timedelta(days=7)).month != day.month
    return day.day <= 7 or is_last_monday


def nearest_weekday_to(number):
    def matches(day):
        """The nearest weekday is never in another month."""
        length = calendar.monthrange(day.year, day.month)[1]
        if number > length:
            return False
        wanted = date(day.year, day.month, number)
        if wanted.weekday() == 5:
            wanted += timedelta(days=-1 if number > 1 else 2)
        elif wanted.weekday() == 6:
            wanted += timedelta(days=1 if number < length else -2)
        return day == wanted

    return matches


# The expression, the years, and the question to croniter: None for the same text, another text, or a text for the
# times with a function for days that croniter does not know.
RULES = [
    ("30 2 * * *", LONG, None),
    ("0 0 * * *", LONG, None),
    ("@daily", LONG, "0 0 * * *"),
    ("@midnight", LONG, "0 0 * * *"),
    ("@weekly", LONG, "0 0 * * 0"),
    ("@monthly", LONG, "0 0 1 * *"),
    ("@yearly", LONG, "0 0 1 1 *"),
    ("@annually", LONG, "0 0 1 1 *"),
    ("@hourly", YEAR, "0 * * * *"),
    ("30 2,14 * * *", LONG, None),
    ("0,30 2 * * *", LONG, None),
    ("0 1-3 * * *", LONG, None),
    ("15 0 * * *", LONG, None),
    ("1 0 * * *", LONG, None),
    ("59 23 * * *", LONG, None),
    ("45 1 * * *", LONG, None),
    ("0 3 * * *", LONG, None),
    ("10,50 0-3 * * *", DECADE, None),
    ("*/20 2 * * *", DECADE, None),
    ("0 */2 * * *", DECADE, None),
    ("30 */6 * * *", LONG, None),
    ("0 22-2 * * *", DECADE, None),
    ("* 2 * * *", YEAR, None),
    ("*/10 0-22 * * *", YEAR, None),
    ("0 * * * *", DECADE, None),
    ("30 * * * *", DECADE, None),
    ("*/15 * * * *", DECADE, None),
    ("5/15 * * * *", YEAR, None),
    ("*/7 * * * *", YEAR, None),
    ("20 0-23 * * *", YEAR, None),
    ("0 * * * SUN", LONG, None),
    ("*/30 * 1,L * *", LONG, None),
    ("0 9 * * MON-FRI", LONG, None),
    ("30 2 * * SUN", LONG, None),
    ("30 2 * * sat,sun", LONG, None),
    ("0 12 * * FRI-MON", LONG, None),
    ("0 0 * * 5-7", LONG, None),
    ("0 0 * * 1/2", LONG, None),
    ("0 0 * * */3", LONG, None),
    ("0 0 13 * FRI", LONG, None),
    ("0 0 */2 * MON", LONG, None),
    ("0 0 1-7 * 0", LONG, None),
    ("30 1 ? * SUN", LONG, None),
    ("0 12 1,15 * *", LONG, None),
    ("0 0 L * *", LONG, None),
    ("30 2 L 3,10 *", LONG, None),
    ("0 0 1,L FEB *", LONG, None),
    ("0 0 LW * *", LONG, ("0 0 * * *", last_weekday)),
    ("0 0 15W * *", LONG, None),
    ("0 0 1W * *", LONG, None),
    ("0 0 31W * *", LONG, ("0 0 * * *", nearest_weekday_to(31))),
    ("0 0 1W,30W * *", LONG, ("0 0 * * *", lambda day: nearest_weekday_to(1)(day) or nearest_weekday_to(30)(day))),
    ("0 0 * * MON#2", LONG, None),
    ("30 2 * 3,4,9,10,11 SUN#2", LONG, None),
    ("0 0 * * 5L", LONG, "0 0 * * L5"),
    ("30 2 * MAR,OCT SUNL", LONG, "30 2 * 3,10 L0"),
    ("0 0 1-7 * FRI#1,MONL", LONG, ("0 0 * * *", first_week_or_last_monday)),
    ("0 0 29 2 *", LONG, None),
    ("0 0 29 2 MON", LONG, None),
    ("0 0 31 * *", LONG, None),
    ("0 0 1 */3 *", LONG, None),
    ("0 6 1 NOV-FEB *", LONG, None),
    ("15 30 2 * * *", LONG, None),
    ("*/20 59 1 * * *", LONG, None),
    ("0,30 0 2 * * 0", LONG, None),
    ("0 0 0 1 1 *", LONG, None),
    ("30 15 */4 * * MON-FRI", DECADE, None),
]


# Clock changes around which all occurrences are listed: the zone, and the first and the last instant.
WINDOWS = [
    ("Europe/Berlin", "2026-03-28T12:00", "2026-03-29T12:00"),
    ("Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00"),
    ("America/New_York", "2026-03-08T00:00", "2026-03-08T18:00"),
    ("America/New_York", "2026-11-01T00:00", "2026-11-01T18:00"),
    ("Europe/London", "1941-05-03T12:00", "1941-05-04T12:00"),  # to two hours
    ("Europe/London", "1945-07-14T12:00", "1945-07-15T12:00"),  # from two hours to one
    ("Australia/Lord_Howe", "2026-10-03T06:00", "2026-10-04T06:00"),  # half an hour
    ("Australia/Lord_Howe", "2026-04-04T06:00", "2026-04-05T06:00"),
    ("America/Sao_Paulo", "2018-11-03T12:00", "2018-11-04T18:00"),  # midnight is skipped
    ("America/Sao_Paulo", "2018-02-17T12:00", "2018-02-18T18:00"),  # the hour from 23:00 is repeated
    ("Asia/Beirut", "2023-03-29T06:00", "2023-03-30T18:00"),
    ("Asia/Beirut", "2026-10-24T06:00", "2026-10-25T18:00"),
    ("Africa/Cairo", "2023-04-27T06:00", "2023-04-28T18:00"),
    ("Africa/Cairo", "2014-05-15T06:00", "2014-05-16T18:00"),
    ("America/Havana", "2026-03-07T18:00", "2026-03-08T18:00"),
    ("America/Havana", "2026-10-31T18:00", "2026-11-01T18:00"),  # midnight is repeated
    ("Asia/Gaza", "2011-03-31T12:00", "2011-04-01T12:00"),  # at one minute past midnight
    ("America/St_Johns", "2011-03-13T00:00", "2011-03-13T18:00"),  # at one minute past midnight
    ("America/St_Johns", "2010-11-07T00:00", "2010-11-07T18:00"),  # the first minute of the day comes before the last hour of the day before
    ("Pacific/Apia", "2011-12-29T00:00", "2011-12-31T23:00"),  # a day is skipped
    ("Pacific/Fakaofo", "2011-12-29T00:00", "2011-12-31T23:00"),
    ("Pacific/Kwajalein", "1993-08-20T00:00", "1993-08-22T18:00"),
    ("Asia/Manila", "1844-12-30T00:00", "1845-01-01T18:00"),
    ("America/Juneau", "1867-10-17T00:00", "1867-10-19T18:00"),  # a day is repeated
    ("Pacific/Chatham", "2026-09-26T06:00", "2026-09-27T06:00"),  # at 02:45
    ("Pacific/Chatham", "2026-04-04T06:00", "2026-04-05T06:00"),
    ("Antarctica/Troll", "2026-03-28T12:00", "2026-03-29T12:00"),  # two hours
    ("Antarctica/Troll", "2026-10-24T12:00", "2026-10-25T12:00"),
    ("Europe/Dublin", "2026-10-24T12:00", "2026-10-25T12:00"),
    ("Asia/Pyongyang", "2015-08-14T06:00", "2015-08-15T06:00"),  # by half an hour, without summer time
    ("Asia/Pyongyang", "2018-05-04T06:00", "2018-05-05T06:00"),
    ("America/Caracas", "2016-05-01T00:00", "2016-05-01T18:00"),
    ("Europe/Moscow", "2014-10-25T12:00", "2014-10-26T12:00"),
    ("Africa/Casablanca", "2026-02-14T12:00", "2026-02-15T12:00"),  # Ramadan
    ("Europe/Dublin", "1916-05-20T12:00", "1916-05-21T12:00"),  # an offset of 25 m 21 s
    ("Europe/Dublin", "1916-09-30T12:00", "1916-10-01T12:00"),
    ("Africa/Monrovia", "1972-01-06T12:00", "1972-01-07T12:00"),  # 44 m 30 s
]
WINDOW_RULES = [
    "0 0 * * *",
    "30 2 * * *",
    "30 2,14 * * *",
    "0,30 2 * * *",
    "0 1-3 * * *",
    "59 23 * * *",
    "*/15 0-4 * * *",
    "0 12 * * *",
    "0 * * * *",
    "30 * * * *",
]


def stamp(local, zone, fold):
    return int(local.replace(tzinfo=zone, fold=fold).timestamp())


def shown(at, zone):
    """The local time at an instant."""
    return datetime.fromtimestamp(at, zone).replace(tzinfo=None, fold=0)


def end_of_gap(local, zone):
    """The first instant after a local time that the clock skips."""
    before, after = sorted(stamp(local, zone, fold) for fold in (0, 1))
    while after - before > 1:
        middle = (before + after) // 2
        if shown(middle, zone) < local:
            before = middle
        else:
            after = middle
    return after


def instants(local, zone, every_hour):
    """The instants at which a local time of a rule occurs."""
    first, second = stamp(local, zone, 0), stamp(local, zone, 1)
    if shown(first, zone) != local:
        return [] if every_hour else [end_of_gap(local, zone)]
    return [first, second] if every_hour and first != second else [first]


def is_every_hour(text):
    fields = {"@hourly": "0 * * * *"}.get(text, text).split()
    return len(fields) >= 5 and fields[-4] in ("*", "0-23")


def local_times(text, asked, start, end):
    """All local times of a rule, in [start, end)."""
    fits = lambda day: True
    if isinstance(asked, tuple):
        asked, fits = asked
    expression = asked or text
    times = croniter(
        expression, start - timedelta(seconds=1), second_at_beginning=len(expression.split()) == 6
    )
    found = []
    while True:
        time = times.get_next(datetime)
        if time >= end:
            return found
        if fits(time.date()):
            found.append(time)


def occurrences(locals_, zone, every_hour):
    found = set()
    for local in locals_:
        found.update(instants(local, zone, every_hour))
    return sorted(found)


def digest(found):
    return hashlib.sha256("\n".join(map(str, found)).encode()).hexdigest()[:12]


def version():
    for folder in TZPATH:
        table = Path(folder) / "tzdata.zi"
        if table.exists():
            return table.read_text().splitlines()[0].split()[-1]
    return "unknown"


def decades():
    yield f"# Made by oracle.py with the time zones of {version()}. Each rule from the first day of a year to another."
    columns = []
    for text, (first, last), asked in RULES:
        yield f"rule {first} {last} {text}"
        # Two days more at both ends, because local times of other zones lie in the same range of UTC.
        start, end = datetime(first, 1, 1) - timedelta(days=2), datetime(last, 1, 1) + timedelta(days=2)
        columns.append((first, last, is_every_hour(text), local_times(text, asked, start, end)))
    for name in ZONES + MORE_ZONES:
        zone = ZoneInfo(name)
        cells = []
        for first, last, every_hour, locals_ in columns:
            if len(locals_) > DENSE and name in MORE_ZONES:
                cells.append("-")
                continue
            start, end = (int(datetime(year, 1, 1, tzinfo=timezone.utc).timestamp()) for year in (first, last))
            found = [at for at in occurrences(locals_, zone, every_hour) if start <= at < end]
            cells.append(f"{len(found)}:{digest(found)}")
        yield " ".join(["zone", name, *cells])


def changes():
    yield f"# Made by oracle.py with the time zones of {version()}. All occurrences of each rule between two instants."
    for name, start, end in WINDOWS:
        yield f"window {name} {start}Z {end}Z"
        zone = ZoneInfo(name)
        start, end = datetime.fromisoformat(start), datetime.fromisoformat(end)
        for text in WINDOW_RULES:
            locals_ = local_times(text, None, start - timedelta(days=3), end + timedelta(days=3))
            found = occurrences(locals_, zone, is_every_hour(text))
            utc = [datetime.fromtimestamp(at, timezone.utc).replace(tzinfo=None) for at in found]
            listed = [at.strftime("%d.%H:%M:%S") for at in utc if start <= at <= end]
            yield f"  {text} = {' '.join(listed) or '-'}"


def differences():
    """Prints the differences to croniter around the same changes."""
    for name, start, end in WINDOWS:
        zone = ZoneInfo(name)
        start, end = (datetime.fromisoformat(text).replace(tzinfo=timezone.utc) for text in (start, end))
        for text in WINDOW_RULES:
            naive = [edge.replace(tzinfo=None) for edge in (start, end)]
            locals_ = local_times(text, None, naive[0] - timedelta(days=3), naive[1] + timedelta(days=3))
            ours = [at for at in occurrences(locals_, zone, is_every_hour(text))]
            ours = [at for at in ours if start.timestamp() <= at <= end.timestamp()]
            times = croniter(text, (start - timedelta(seconds=1)).astimezone(zone))
            theirs = []
            for _ in range(1000):
                at = times.get_next(datetime).timestamp()
                if at > end.timestamp():
                    break
                theirs.append(int(at))
            if theirs != ours:
                show = lambda found: " ".join(datetime.fromtimestamp(at, zone).strftime("%d.%H:%M%z") for at in sorted(found))
                print(f"{name} {start:%F} `{text}`: only here {show(set(ours) - set(theirs)) or '-'}; "
                      f"only croniter {show(set(theirs) - set(ours)) or '-'}"
                      f"{'; twice or out of order' if sorted(set(theirs)) != theirs else ''}")


def main():
    if "--differences" in sys.argv[1:]:
        differences()
        return
    for name, lines in (("changes", changes), ("decades", decades)):
        if name in sys.argv[1:] or not sys.argv[1:]:
            (Path(__file__).parent / f"{name}.txt").write_text("\n".join(lines()) + "\n")


main()
