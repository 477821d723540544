# The process reaper. It kills the processes of an engine's jobs if the engine dies, or if the engine's lease is over
# and the engine does not kill them itself. The table of attempts is a file that the reaper has as its standard output.
# It is read only when something is to be killed. Each line is an attempt, and each word is written twice:
#
#   @COUNT        at the beginning and the end: how often the lease was confirmed before the attempt, as @3
#   NAME:NAME     its processes write their output to the file of that name, as 12-3
#   GROUP:GROUP   its process group, as 4711
#
# Messages come on standard input, one a line:
#
#   = INSTANT COUNT  the lease is confirmed until then, in hundredths of a second as /proc/uptime counts them, and so
#                    often so far
#   ! .              a group was added when the lease was nearly over
#   ? .              the lease may be over: this message comes from the timer below
#   . .              the engine ends normally, and no job runs
#
# If the input ends without the last message, the engine has died. A shell can't wait for a message and for a time at
# once, so a child waits for the time and then writes a message.
#
# $1: the folder of the output files. $2: `one-kernel` or `many-hosts`, where the other workers are that wait for the
# end of the lease.

trap '' HUP INT TERM
exec 3<&0 4<&1 >/dev/null
until= timer= over= finished= confirmations=0

# Sets `now` in hundredths: 12.08 is 1208. The 1 keeps 08 from being read as octal.
read_clock() {
    read -r now rest </proc/uptime && now=$((${now%.*} * 100 + 1${now#*.} - 100))
}

# Starts a child that writes a message when `until` has come. Some `sleep` programs accept whole seconds only.
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

# Kills the attempts that began under the first $2 confirmations, or all of them if there is no $2. A later confirmation
# may be in the pipe already, and attempts that began after it.
#
# Kills the groups first. Then it kills processes that left their group, or whose group was not added yet: it finds
# them by their environment.
end_everything() {
    folder=$1 last=$2
    set --
    # The shell reads the table itself. If the jobs have used up all processes that the system allows, no program can
    # be started before their groups are gone.
    while read -r line || [ "$line" ]; do
        if [ "$last" ]; then
            # The end tells whether another attempt was written over this one while it was read.
            count=${line%% *}
            [ "$count" = "${line##* }" ] && [ "${count#@}" -le "$last" ] || continue
        fi
        for word in $line; do
            one=${word%%:*}
            # This word is being written now.
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

while [ -z "$finished" ] && read -r change value count; do
    case $change in
        =)
            until=$value over= confirmations=$count
            [ "$timer" ] || { read_clock && set_timer; }
            ;;
        '!') [ -z "$over" ] || end_everything "$1" "$confirmations" ;;
        '?')
            wait "$timer"
            timer=
            read_clock || continue
            late=$((now - due))
            # The machine slept. Under one kernel all other workers slept too, so that time does not count.
            [ "$2" = many-hosts ] || [ "$late" -lt 100 ] || until=$((until + late))
            if [ "$now" -lt "$until" ]; then
                set_timer
            else
                over=1
                end_everything "$1" "$confirmations"
            fi
            ;;
        .) finished=1 ;;
    esac
done
[ "$finished" ] || end_everything "$1" ''
trap '' USR1
kill -USR1 0
[ "$finished" ] || exec rm -rf -- "$1"
