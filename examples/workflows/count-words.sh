# One part of word-count.toml: counts the words of every fourth file of a list.
# Usage: sh count-words.sh SCRATCH PART
# Writes lines of "words TAB file" to SCRATCH/part.PART and prints their sums as JSON. It is safe to
# run it twice, because it writes the whole file again.
set -eu
scratch=$1
part=$2

awk -v part="$part" 'NR % 4 == part' "$scratch/files" > "$scratch/files.$part"
while IFS= read -r file; do
    printf '%d\t%s\n' "$(wc -w < "$file")" "$file"
done < "$scratch/files.$part" > "$scratch/part.$part"
awk '{ words += $1 } END { printf "{\"files\": %d, \"words\": %d}\n", NR, words }' "$scratch/part.$part"
