# Beside an engine: ends its jobs' processes when it dies, or when its lease is over and it does not do so
# itself. What there is to end stands on the board, a file that it has as its standard output. It is read only then;
# each of its words stands there twice:
#
#   NAME:NAME     an attempt: its processes write their output to the file of that name, as 12-3
#   GROUP:GROUP   its process group, as 4711
#
# It hears on standard input, one message a line:
#
#   = INSTANT  the lease is confirmed until then, in hundredths of a second as /proc/uptime counts them
#   ! .        a group was noted when the lease was nearly over
#   ? .        the lease may be over: from the timer below
#   . .        the engine ends in order, and nothing runs
#
# An end of the input without the last is the engine's death. A shell can't wait for a message and for a time
# at once: so a child waits for the time, and then writes a message.
#
# $1: the folder of the output files. $2: `one-kernel` or `many-hosts`, where the others are that wait for the
# lease's end.

trap '' HUP INT TERM
exec 3<&0 4<&1 >/dev/null
until= timer= over= bye=

# Sets `now` in hundredths: 12.08 is 1208. The 1 keeps 08 from being read as octal.
look_at_clock() {
    read -r now rest </proc/uptime && now=$((${now%.*} * 100 + 1${now#*.} - 100))
}

# Has a child say so when `until` has come. Some `sleep` know whole seconds only.
set_timer() {
    left=$((until - now))
    [ "$left" -gt 0 ] || left=0
    due=$((now + left))
    {
        sleep "$((left / 100)).$((left % 100 / 10))$((left % 10))" 3<&- ||
            sleep "$((left / 100 + 1))" 3<&- || exit
        echo '? .' >/proc/self/fd/3
    } 2>/dev/null &
    timer=$!
}

# First the groups. Then, by what is in their environment, processes that left their group, or were started
# and not told of.
end_everything() {
    folder=$1
    set --
    # Read by the shell itself: when the jobs have used up what processes there may be, no program starts before
    # their groups are gone.
    while read -r line || [ "$line" ]; do
        for word in $line; do
            one=${word%%:*}
            # Another one is just being written.
            [ "$word" = "$one:$one" ] || continue
            case $one in
                *-*) set -- "$@" -e "WINDLASS_OUTPUT=$folder/$one" ;;
                *) kill -9 "-$one" ;;
            esac
        done
    done 2>/dev/null </proc/self/fd/4
    [ $# -gt 0 ] || return 0
    for round in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        found=
        for environment in $(grep -lsxzF "$@" /proc/[0-9]*/environ </dev/null); do
            process=${environment#/proc/}
            kill -9 "${process%/environ}" && found=1
        done 2>/dev/null
        [ "$found" ] || return 0
    done
}

while [ -z "$bye" ] && read -r change value; do
    case $change in
        =)
            until=$value over=
            [ "$timer" ] || { look_at_clock && set_timer; }
            ;;
        '!') [ -z "$over" ] || end_everything "$1" ;;
        '?')
            wait "$timer"
            timer=
            look_at_clock || continue
            late=$((now - due))
            # The machine slept. Under one kernel so did all the others: that time does not count.
            [ "$2" = many-hosts ] || [ "$late" -lt 100 ] || until=$((until + late))
            if [ "$now" -lt "$until" ]; then
                set_timer
            else
                over=1
                end_everything "$1"
            fi
            ;;
        .) bye=1 ;;
    esac
done
[ "$bye" ] || end_everything "$1"
trap '' USR1
kill -USR1 0
[ "$bye" ] || exec rm -rf -- "$1"
