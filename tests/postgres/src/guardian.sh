# Stops a server and removes its folder when no process needs it any more. Each process that needs it holds a shared
# lock on the file "users". The kernel releases that lock when the process ends, even if it is killed.
#
# Standard input is the guardian's own lock file, so that there is only one guardian. Arguments: the folder of "users",
# the server's folder, the seconds to wait, and the command that stops the server.
#
# A process that needs the server first takes the shared lock. This script stops the server only while it holds the
# exclusive lock, and releases its own lock before that one. So a new process finds either a server with a guardian, or
# neither of them.
base=$1
server=$2
patience=$3
shift 3
cd / || exit 1
exec 9< "$base/users" || exit 1

# Other commands do not inherit standard input, so that the guardian's lock ends with the guardian.
stamp() { stat -c '%y' "$base/users" < /dev/null 2> /dev/null; }

while :; do
    flock 9 < /dev/null || exit 1
    seen=$(stamp)
    flock -u 9
    sleep "$patience" < /dev/null
    # Each new process changes the time of the file. It may have ended since.
    if [ "$(stamp)" = "$seen" ] && flock -n 9; then
        break
    fi
done

# If the folder was removed, a new one has its own guardian.
[ "$base/users" -ef /proc/self/fd/9 ] || exit 0

pid=$(head -n 1 "$server/data/postmaster.pid" 2> /dev/null)
if [ -n "$pid" ] && grep -qsF "$server/data" "/proc/$pid/cmdline" < /dev/null; then
    everybody=$pid
    for status in $(grep -ls "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status); do
        process=${status#/proc/}
        everybody="$everybody ${process%/status}"
    done
    # A paused process can't end by itself.
    kill -CONT $everybody 2> /dev/null
    "$@" < /dev/null || kill -KILL $everybody 2> /dev/null
fi
rm -rf "$server" < /dev/null
exec < /dev/null
