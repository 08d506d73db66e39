"""TLS on a control channel: a thread carries bytes between the encrypted connection and a plain socket."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from dataclasses import dataclass
from pathlib import Path

from soft.errors import SoftError


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """PEM files: our certificate and key, and the authority that signed the switch's certificate.

    Without an authority the switch's certificate is not checked, as is common between a switch and its controller.
    """

    certificate: Path | None = None
    key: Path | None = None
    authority: Path | None = None


def context(files: TlsFiles, *, server: bool) -> ssl.SSLContext:
    """The settings for one side. The controller may be either: whoever connects is TLS's client."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_REQUIRED if files.authority is not None else ssl.CERT_NONE
    if server and files.certificate is None:
        raise SoftError("A controller that listens with TLS needs --cert and --key.")
    try:
        if files.certificate is not None:
            made.load_cert_chain(files.certificate, files.key)
        if files.authority is not None:
            made.load_verify_locations(files.authority)
    except (OSError, ssl.SSLError) as error:
        names = ", ".join(str(name) for name in (files.certificate, files.key, files.authority) if name is not None)
        raise SoftError(f"The TLS files cannot be used ({names}): {error.strerror or error}.") from None
    return made


def plain_end(connection: socket.socket, settings: ssl.SSLContext, *, server: bool, timeout: float) -> socket.socket:
    """Shake hands over a connection; what is sent into the socket returned goes out encrypted, and the other way."""
    connection.settimeout(timeout)
    try:
        secure = settings.wrap_socket(connection, server_side=server)
    except (OSError, ssl.SSLError) as error:
        connection.close()
        raise SoftError(f"The TLS handshake with the switch failed: {error}.") from None
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry, args=(secure, theirs), daemon=True).start()
    return ours


def _carry(secure: ssl.SSLSocket, plain: socket.socket) -> None:
    """Until either side closes; then both are closed."""
    with secure, plain:
        secure.setblocking(False)
        while True:
            with contextlib.suppress(ssl.SSLWantReadError):
                try:
                    while data := secure.recv(1 << 16):
                        plain.sendall(data)
                    return
                except ssl.SSLWantReadError:
                    raise
                except OSError:
                    return
            ready, _, _ = select.select([secure, plain], [], [])
            if plain in ready:
                try:
                    if not (data := plain.recv(1 << 16)):
                        return
                    secure.setblocking(True)
                    secure.sendall(data)
                    secure.setblocking(False)
                except OSError:
                    return
