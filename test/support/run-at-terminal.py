"""Runs a command at a pseudo-terminal: run-at-terminal.py COLUMNS COMMAND…; what it shows goes to standard output, what stands in standard input is typed."""

import fcntl
import os
import pty
import select
import struct
import sys
import termios

pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack('HHHH', 24, int(sys.argv[1]), 0, 0))
    os.execvp(sys.argv[2], sys.argv[2:])
sources = [terminal, 0]
while True:
    for source in select.select(sources, [], [])[0]:
        try:
            data = os.read(source, 65536)
        except OSError:  # What Linux says of a terminal that nobody writes to any more.
            data = b''
        if source == 0:
            if data:
                os.write(terminal, data)
            else:
                sources.remove(0)
        elif data:
            os.write(1, data)
        else:
            sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
