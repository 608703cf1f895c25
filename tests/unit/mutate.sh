#!/bin/sh
# mutate.sh NAME SOURCE OUTPUT: the source with one fault in it.  An expression that finds nothing to change
# any more is an error: the fault must be stated anew.
set -e
case $1 in
flipped-bit)              fault='s/store64(bytes + plan->dur_off, t - from);/store64(bytes + plan->dur_off, (t - from) ^ 1);/' ;;
swapped-columns)          fault='s/plan->column\[i\]);/plan->column[plan->n_columns > 2 \&\& i < 2 ? 1 - i : i]);/' ;;
lost-record)              fault='s/r->stats.records++;/if (++r->stats.records % 97 == 0) continue;/' ;;
checksum-ignored)         fault='s/return XXH3_64bits_digest(&state) == h->checksum;/return true;/' ;;
header-checksum-ignored)  fault='s/if (h->checksum != XXH3_64bits/if (0 != 0 * XXH3_64bits/' ;;
footer-ignored)           fault='s/if (records != r->decoded/if (records < r->decoded/' ;;
definitions-last)         fault='s/for (int own = 1; own >= 0; own--)/for (int own = 0; own <= 1; own++)/' ;;
kind-of-tail-ignored)     fault='s/ ^ kind \* 0x9e3779b97f4a7c15ull//' ;;
blobs-abandoned)          fault='s/w->error = w->begun ? 0 : -EINVAL;/&\n\tw->n_pending = w->pending_bytes = 0;/' ;;
hole-in-a-run)            fault='s/r->end == begin;/r->end <= begin;/' ;;
duration-quantised-alone) fault='s/from = (raw_t - load64(bytes + plan->dur_off)) >> w->shift;/from = t - (load64(bytes + plan->dur_off) >> w->shift);/' ;;
*)                        echo "mutate.sh: no fault is called $1" >&2; exit 1 ;;
esac
sed -e "$fault" "$2" >"$3"
if cmp -s "$2" "$3"; then
	echo "mutate.sh: $1 changes nothing in $2" >&2
	rm -f "$3"
	exit 1
fi
