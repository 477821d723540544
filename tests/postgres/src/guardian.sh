# Stops a server and removes its folder once nobody needs it, however those who did have ended: each holds
# a shared lock on the file "users" while it lives.
#
# Standard input is the guardian's own locked file, so that there is one guardian. Arguments: the folder of
# "users", the server's folder, seconds of patience, and the command that stops the server.
#
# Whoever wants the server takes the shared lock first. This script stops the server only while it holds
# the exclusive one, and gives up its own lock before that: so a newcomer finds either a server that has
# its guardian, or none of both.
base=$1
server=$2
patience=$3
shift 3
cd / || exit 1
exec 9< "$base/users" || exit 1

# What this script waits for does not keep standard input: the guardian's lock ends with the guardian.
stamp() { stat -c '%y' "$base/users" < /dev/null 2> /dev/null; }

while :; do
    flock 9 < /dev/null || exit 1
    seen=$(stamp)
    flock -u 9
    sleep "$patience" < /dev/null
    # A newcomer writes a new stamp: somebody was here since, though he may have gone again.
    if [ "$(stamp)" = "$seen" ] && flock -n 9; then
        break
    fi
done

# Somebody removed the folder: what is there now has a guardian of its own.
[ "$base/users" -ef /proc/self/fd/9 ] || exit 0

pid=$(head -n 1 "$server/data/postmaster.pid" 2> /dev/null)
if [ -n "$pid" ] && grep -qsF "$server/data" "/proc/$pid/cmdline" < /dev/null; then
    everybody=$pid
    for status in $(grep -ls "^PPid:[[:space:]]*$pid\$" /proc/[0-9]*/status); do
        process=${status#/proc/}
        everybody="$everybody ${process%/status}"
    done
    # One that was stopped can't end by itself.
    kill -CONT $everybody 2> /dev/null
    "$@" < /dev/null || kill -KILL $everybody 2> /dev/null
fi
rm -rf "$server" < /dev/null
exec < /dev/null
