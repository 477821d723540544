//! The few commands of SMTP (RFC 5321) that hand one mail to a server that asks for no password. A crate such as `lettre`
//! does this in a larger program, with encryption and with every sort of text.

use std::fmt;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::connection::Result;
use crate::mailer::Mail;

const SENDER: &str = "hello@signup.example";

/// How long the server may take for each answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest line of an answer that is read.
const LINE_BYTES_MAX: u64 = 4_096;

/// An answer of the server that is not the expected one.
#[derive(Debug)]
pub(crate) struct Refused {
    answer: String,
}

impl Refused {
    /// The same mail will not be accepted later.
    pub(crate) fn is_final(&self) -> bool {
        self.answer.starts_with('5')
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "refused: {}", self.answer)
    }
}

impl std::error::Error for Refused {}

/// Returns when the server is responsible for the mail.
pub(crate) fn send(server: &str, message_id: &str, mail: &Mail) -> Result<()> {
    // A line break in one of these would be a command or a header of its own.
    if [&mail.to, &mail.subject].iter().any(|text| text.contains(['\r', '\n', '<', '>']) || !text.is_ascii())
    {
        return Err(Refused { answer: "500 the address or the subject is not plain text".to_owned() }.into());
    }
    let mut session = Session::open(server)?;
    session.expect('2')?;
    session.ask("EHLO signup.example", '2')?;
    session.ask(&format!("MAIL FROM:<{SENDER}>"), '2')?;
    session.ask(&format!("RCPT TO:<{}>", mail.to), '2')?;
    session.ask("DATA", '3')?;
    session.ask(&content(message_id, mail), '2')?;
    // The mail is the server's now. Whether it says goodbye does not matter.
    let _goodbye = session.ask("QUIT", '2');
    Ok(())
}

/// The mail, and the line with a dot that ends it. The date is left to the server.
fn content(message_id: &str, mail: &Mail) -> String {
    let header = format!(
        "Message-ID: {message_id}\r\nFrom: {SENDER}\r\nTo: {}\r\nSubject: {}\r\n\
         Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n",
        mail.to, mail.subject
    );
    // A line that begins with a dot gets a second one, which the server removes.
    let lines = mail.text.lines().map(|line| match line.starts_with('.') {
        true => format!(".{line}\r\n"),
        false => format!("{line}\r\n"),
    });
    format!("{header}\r\n{}.", lines.collect::<String>())
}

struct Session {
    stream: BufReader<TcpStream>,
}

impl Session {
    fn open(server: &str) -> Result<Session> {
        let address = server.to_socket_addrs()?.next().ok_or("the server's name has no address")?;
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Session { stream: BufReader::new(stream) })
    }

    fn ask(&mut self, command: &str, expected: char) -> Result<()> {
        self.stream.get_mut().write_all(format!("{command}\r\n").as_bytes())?;
        self.expect(expected)
    }

    /// Reads an answer, whose code must begin with this digit. An answer of several lines has `-` after its code.
    fn expect(&mut self, digit: char) -> Result<()> {
        loop {
            let mut line = String::new();
            if self.stream.by_ref().take(LINE_BYTES_MAX).read_line(&mut line)? == 0 {
                return Err("the server closed the connection".into());
            }
            if line.as_bytes().get(3) != Some(&b'-') {
                let is_expected = line.starts_with(digit);
                let answer = line.trim_end().to_owned();
                return if is_expected { Ok(()) } else { Err(Refused { answer }.into()) };
            }
        }
    }
}
