"""An SMTP server (aiosmtpd) on a free port of 127.0.0.1, which writes what it accepts into the folder of its argument.

`port` gets the port. `mails` gets a line for each mail, before the mail is accepted: its Message-ID and its recipient.
While the folder has a file `hold`, no mail is accepted after that. A recipient `nobody…` is refused for good, and
`busy…` once for now.
"""

import asyncio
import email
import pathlib
import sys

from aiosmtpd.smtp import SMTP


class Mailbox:
    def __init__(self, folder):
        self.folder, self.asked_again = folder, set()

    async def handle_RCPT(self, _server, _session, envelope, address, _options):
        if address.startswith("nobody"):
            return "550 there is no such mailbox"
        if address.startswith("busy") and address not in self.asked_again:
            self.asked_again.add(address)
            return "451 try again later"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, _server, _session, envelope):
        message_id = email.message_from_bytes(envelope.content)["Message-ID"]
        with open(self.folder / "mails", "a", encoding="utf-8") as mails:
            for recipient in envelope.rcpt_tos:
                mails.write(f"{message_id} {recipient}\n")
        while (self.folder / "hold").exists():
            await asyncio.sleep(0.005)
        return "250 accepted"


async def main():
    folder = pathlib.Path(sys.argv[1])
    mailbox = Mailbox(folder)
    server = await asyncio.get_running_loop().create_server(lambda: SMTP(mailbox), "127.0.0.1", 0)
    (folder / "port.new").write_text(str(server.sockets[0].getsockname()[1]))
    (folder / "port.new").rename(folder / "port")
    await server.serve_forever()


asyncio.run(main())
