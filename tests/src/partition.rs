//! A separate host for a process: a network namespace with one virtual cable, which a test can disconnect.
//!
//! This needs the right to create namespaces, which root has. Without it, the test fails.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::thread;

/// A network namespace, removed at the end of the test.
#[derive(Debug)]
pub struct Host {
    name: String,
    /// The end of the cable on this side.
    cable: String,
    /// The address of this side.
    address: String,
}

impl Host {
    /// Makes the namespace. Each test has its own `number`, so that two namespaces do not collide.
    ///
    /// # Panics
    /// If the machine does not allow namespaces. The message says what failed.
    #[must_use]
    pub fn new(number: u8) -> Host {
        let id = std::process::id() % 100_000;
        let host = Host {
            name: format!("windlass-{id}-{number}"),
            cable: format!("wl{id}a{number}"),
            address: format!("10.231.{number}.1"),
        };
        let (name, cable, inner) = (&host.name, &host.cable, format!("wl{id}b{number}"));
        ip(&format!("netns add {name}"));
        ip(&format!("link add {cable} type veth peer name {inner} netns {name}"));
        ip(&format!("addr add {}/30 dev {cable}", host.address));
        ip(&format!("link set {cable} up"));
        ip(&format!("-n {name} addr add 10.231.{number}.2/30 dev {inner}"));
        ip(&format!("-n {name} link set {inner} up"));
        ip(&format!("-n {name} link set lo up"));
        host
    }

    /// Makes a port of this machine reachable from the host, and returns its address there.
    ///
    /// # Panics
    /// If this side of the cable cannot be used.
    #[must_use]
    pub fn reach(&self, port: u16) -> String {
        let listener = TcpListener::bind((self.address.as_str(), 0)).expect("the cable's address is ours");
        let reachable = listener.local_addr().expect("it listens");
        thread::spawn(move || {
            for client in listener.incoming().flatten() {
                if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
                    pass_on(&client, &server);
                    pass_on(&server, &client);
                }
            }
        });
        reachable.to_string()
    }

    /// A command that runs on the host, in its own process namespace: as on another machine, its processes are not
    /// visible here.
    #[must_use]
    pub fn command(&self, program: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("ip");
        command.args([
            "netns",
            "exec",
            &self.name,
            "unshare",
            "--pid",
            "--fork",
            "--mount-proc",
            "--kill-child",
        ]);
        command.arg(program).args(arguments);
        command
    }

    /// Disconnects the cable: packets are lost without an error.
    pub fn cut(&self) {
        ip(&format!("link set {} down", self.cable));
    }

    /// Connects the cable again.
    pub fn heal(&self) {
        ip(&format!("link set {} up", self.cable));
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _gone = Command::new("ip").args(["netns", "delete", &self.name]).status();
        let _gone = Command::new("ip").args(["link", "delete", &self.cable]).status();
    }
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output();
    let output = output.unwrap_or_else(|error| panic!("`ip` cannot be started: {error}; install iproute2"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments}: {said}; namespaces need root");
}

/// Bytes of one direction, on a thread that ends with the connection.
fn pass_on(from: &TcpStream, to: &TcpStream) {
    let (Ok(mut from), Ok(mut to)) = (from.try_clone(), to.try_clone()) else { return };
    thread::spawn(move || {
        let mut buffer = [0; 16 * 1024];
        loop {
            match from.read(&mut buffer) {
                Ok(read) if read > 0 && to.write_all(&buffer[..read]).is_ok() => {}
                Ok(_) | Err(_) => break,
            }
        }
        let _gone = to.shutdown(Shutdown::Both);
        let _gone = from.shutdown(Shutdown::Both);
    });
}
