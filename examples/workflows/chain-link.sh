# One link of chain.toml: hashes its argument and prints the hash.
# Usage: sh chain-link.sh TEXT
# If there is a journal, it appends a line at its start and one at its end: the event, the job and
# the attempt. A line this short is appended whole or not at all.
set -eu

note() {
    if [ -n "$WINDLASS_PARAM_JOURNAL" ]; then
        echo "$1 $WINDLASS_JOB_NAME $WINDLASS_ATTEMPT" >> "$WINDLASS_PARAM_JOURNAL"
    fi
}

note start
sleep "$WINDLASS_PARAM_PAUSE"
printf '%s' "$1" | sha256sum | cut -c 1-64
note end
