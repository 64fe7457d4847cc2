"""The confined child: `python -I -S <this directory> <descriptor of the control socket>`.

Everything is imported before the first order, since afterwards the imports might be out of reach. What goes wrong
before the loop runs is told to the server in one datagram; afterwards there is nothing to tell but an end.
"""

from __future__ import annotations

import sys

sys.path.pop(0)
sys.path.append(__file__.rsplit("/", 3)[0])

import gc
import os
import socket

from hermes_ws.warden import orders
from hermes_ws.warden.confine import Wishes, confine, prepare
from hermes_ws.warden.loop import Loop, receive


def main() -> int:
    """Confine, say so, work."""
    descriptor = int(sys.argv[1])
    os.set_inheritable(descriptor, False)
    with socket.socket(fileno=descriptor) as control:
        try:
            order, _ = receive(control)
            if order is None:
                return 1
            wishes = Wishes.parse(order)
            prepare()
            confined = confine(wishes)
            loop = Loop(control, wishes, confined)
        except (OSError, ValueError) as error:
            control.send(orders.encode({"fatal": f"{type(error).__name__}: {error}"[:1000]}))
            return 1
        # What lives now lives for ever: looking through it would only unshare pages with the children.
        gc.collect()
        gc.freeze()
        control.send(orders.encode({"ready": confined.report()}))
        loop.run()
    return 0


sys.exit(main())
