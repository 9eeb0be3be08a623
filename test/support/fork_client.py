"""Ask the fork server at the socket argv[1] to run ``python argv[3:]``, with the streams, folder and environment here.

It gets the open files whose numbers argv[2] lists, too, and leads a session where this process does.
This process stands for that one: it ends with its status, passes signals on, and takes it along where it is killed.
It imports what is built into Python alone, so that it starts in a hundredth of a second.
"""

import _signal
import _socket
import marshal
import os
import sys

program, numbers = sys.argv[3:], (0, 1, 2, *map(int, sys.argv[2].split()))
server = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
try:
    server.connect(sys.argv[1])
except OSError:  # there is no server any more: the program starts as usual
    os.execv(sys.executable, [sys.executable, *program])
request = marshal.dumps((program, os.getcwd(), dict(os.environ), numbers, os.getsid(0) == os.getpid()))
streams = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
server.sendmsg([len(request).to_bytes(8, "big")], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, streams)])
sent = 0
while sent < len(request):
    sent += server.send(request[sent:])
if server.recv(6) != b"forked":  # the environment has what is read as a process starts
    os.execv(sys.executable, [sys.executable, *program])
for number in numbers:  # who reads a pipe sees its end when the program ends
    os.close(number)
for one in (_signal.SIGINT, _signal.SIGTERM):
    if _signal.getsignal(one) != _signal.SIG_IGN:
        _signal.signal(one, lambda number, frame: server.send(bytes([number])))
status = int.from_bytes(server.recv(4), "big", signed=True)
if status < 0:
    _signal.signal(-status, _signal.SIG_DFL) if -status not in (_signal.SIGKILL, _signal.SIGSTOP) else None
    os.kill(os.getpid(), -status)
os._exit(status)
