"""Runs a program on a terminal of its own, and tells what stands on its screen.

Arguments: a list of steps as JSON, and the command. Each step is an object with one of these keys:
  until   a text that must appear on the screen
  send    keys
  start   another command, which runs beside the program
  size    [columns, rows] that the terminal gets
  signal  the name of a signal for the program
  watch   for so many seconds the program is left alone, and its processor time is measured
Afterwards the program must end by itself. Prints an object as JSON.
"""

import codecs
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time

PATIENCE_S = 60
CODE = re.compile(r"\x1b(?:\[([?0-9;]*)([A-Za-z])|\][^\x07]*\x07|[=>78])")


class Screen:
    """What a terminal shows, as far as a program for the whole screen needs it."""

    def __init__(self, columns, rows):
        self.modes = {"1049": False, "25": True}
        self.resize(columns, rows)
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.waiting = ""

    def resize(self, columns, rows):
        self.columns, self.rows = columns, rows
        self.cells = [[" "] * columns for _ in range(rows)]
        self.x = self.y = 0

    def write(self, data):
        text = self.waiting + self.decoder.decode(data)
        at = 0
        while at < len(text):
            code = CODE.match(text, at)
            if code:
                self.obey(code.group(1) or "", code.group(2))
                at = code.end()
            elif text[at] == "\x1b":
                # The rest of a code may come later.
                break
            else:
                self.put(text[at])
                at += 1
        self.waiting = text[at:]

    def put(self, character):
        if character == "\r":
            self.x = 0
        elif character == "\n":
            self.y = min(self.y + 1, self.rows - 1)
        elif character >= " " and self.x < self.columns and self.y < self.rows:
            self.cells[self.y][self.x] = character
            self.x += 1

    def obey(self, numbers, verb):
        if verb in ("h", "l") and numbers[1:] in self.modes:
            self.modes[numbers[1:]] = verb == "h"
        elif verb == "H":
            parts = [int(part or 1) for part in (numbers or "1;1").split(";")]
            self.y, self.x = parts[0] - 1, (parts + [1])[1] - 1
        elif verb == "K" and self.y < self.rows:
            self.cells[self.y][self.x :] = [" "] * (self.columns - self.x)
        elif verb == "J":
            self.cells = [[" "] * self.columns for _ in range(self.rows)]

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.cells)


def end(programs):
    for program in programs:
        program.kill()
        program.wait()


def main():
    steps, command = json.loads(sys.argv[1]), sys.argv[2:]
    outside, inside = pty.openpty()

    def set_size(columns, rows):
        fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    set_size(80, 24)
    before = termios.tcgetattr(inside)
    screen, raw, screens, others, watched = Screen(80, 24), b"", [], [], []

    def take_terminal():
        os.setsid()
        fcntl.ioctl(inside, termios.TIOCSCTTY, 0)

    program = subprocess.Popen(command, stdin=inside, stdout=inside, stderr=inside, preexec_fn=take_terminal)

    def read(longest_s):
        nonlocal raw
        if select.select([outside], [], [], longest_s)[0]:
            data = os.read(outside, 65536)
            raw += data
            screen.write(data)

    def read_until(is_done, what):
        deadline = time.monotonic() + PATIENCE_S
        while not is_done():
            if time.monotonic() > deadline:
                end([program, *others])
                sys.exit(f"waited in vain for {what}; the screen is:\n{screen.text()}")
            read(0.05)

    def processor_s():
        fields = open(f"/proc/{program.pid}/stat").read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    for step in steps:
        if "until" in step:
            read_until(lambda: step["until"] in screen.text(), step["until"])
            screens.append(screen.text())
        if "send" in step:
            os.write(outside, step["send"].encode())
        if "start" in step:
            others.append(subprocess.Popen(step["start"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        if "size" in step:
            screen.resize(*step["size"])
            set_size(*step["size"])
        if "watch" in step:
            before_s, until = processor_s(), time.monotonic() + step["watch"]
            while time.monotonic() < until:
                read(0.05)
            watched.append(processor_s() - before_s)
        if "signal" in step:
            program.send_signal(getattr(signal, step["signal"]))
    read_until(lambda: program.poll() is not None, "its end")
    read(0.2)
    after = termios.tcgetattr(inside)
    end(others)
    print(
        json.dumps(
            {
                "exit": program.returncode,
                "screens": screens,
                "processor_s": watched,
                "raw": raw.decode("utf-8", "replace"),
                "settings_are_as_before": before == after,
                "is_on_the_other_screen": screen.modes["1049"],
                "cursor_is_shown": screen.modes["25"],
            }
        )
    )


main()
