#!/usr/bin/env python3
"""Sends the mails of queue `mail` by SMTP. After SIGTERM or Ctrl-C it finishes its current mail.

Usage: mailer.py DATABASE SMTP_HOST:PORT [--lease SECONDS]

`windlass serve` or `windlass worker` must run too: it decides about the next attempts. Kill this program at any moment
and start it again: every mail is sent. A mail is sent twice only if the program dies after the server has accepted it,
and before the commit that records this. Both have the same Message-ID, by which a receiver can recognize the second.
"""

import argparse
import email.message
import email.utils
import json
import signal
import smtplib
import threading

from database import now_ms
from worker import Hopeless, Worker

SENDER = "hello@signup.example"
WAS_SENT = "SELECT 1 FROM sent_mails WHERE message_id = :message_id"
RECORD = """
INSERT INTO sent_mails (message_id, sent_ms) VALUES (:message_id, :now) ON CONFLICT (message_id) DO NOTHING
"""


def message(message_id, mail):
    text = email.message.EmailMessage()
    text["Message-ID"] = message_id
    text["Date"] = email.utils.localtime()
    text["From"], text["To"], text["Subject"] = SENDER, mail["to"], mail["subject"]
    text.set_content(mail["text"])
    return text


def send(host, port, text):
    """Returns when the server is responsible for the mail. A server that refuses it for good makes the job hopeless."""
    try:
        with smtplib.SMTP(host, port, timeout=30) as server:
            server.send_message(text)
    except smtplib.SMTPRecipientsRefused as error:
        raise refusal(*next(iter(error.recipients.values())), error)
    except smtplib.SMTPResponseException as error:
        raise refusal(error.smtp_code, error.smtp_error, error)


def refusal(code, reason, error):
    """By RFC 5321 the same mail may be accepted later after 4xx, and will not be after 5xx."""
    return Hopeless(f"refused: {code} {reason.decode(errors='replace')}") if code >= 500 else error


def mailer(worker, host, port):
    def deliver(job):
        try:
            mail = json.loads(job.payload)
            message_id = f"<{job.key}@signup.example>"
            text = message(message_id, mail)
        except (ValueError, KeyError, TypeError) as error:
            raise Hopeless(f"this payload is no mail: {type(error).__name__}: {error}")
        if not worker.database.rows(WAS_SENT, message_id=message_id):
            send(host, port, text)
        # From the server's answer to this commit lasts the time in which a crash sends the mail once more.
        with worker.success(job, {"message_id": message_id}):
            worker.database.change(RECORD, message_id=message_id, now=now_ms())

    return deliver


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("database")
    parser.add_argument("smtp", metavar="SMTP_HOST:PORT")
    parser.add_argument("--lease", type=float, default=30, metavar="SECONDS")
    arguments = parser.parse_args()
    host, _, port = arguments.smtp.rpartition(":")
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: stopped.set())
    worker = Worker(arguments.database, "mail", "email", lease_ms=int(arguments.lease * 1_000))
    print("worker", worker.id, flush=True)
    worker.run(mailer(worker, host, int(port)), stopped)


if __name__ == "__main__":
    main()
