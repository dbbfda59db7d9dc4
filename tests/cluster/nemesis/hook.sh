#!/bin/sh
# A hook that writes down when it began, when it ended and how, and on which replica's machine. What it does follows
# from its attempt's id; whether it is done, it knows from what it wrote down.
log="$FOLDER/hooks.log"
say() {
    echo "$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE $1 $ALLCLEAR_INTENT $ALLCLEAR_EVENT_ID $ALLCLEAR_ATTEMPT" \
        "$$ ${HOME##*/} $(date +%s%3N) $2" >> "$log"
}
say begin -
# whoever is told to stop twice still writes down when it ended: what it runs for that is not stopped
trap 'code=$?; trap "" TERM; say end $code' EXIT
trap 'exit 143' TERM
if [ "$ALLCLEAR_INTENT" = confirm ]; then
    grep -q "^$ALLCLEAR_VM $ALLCLEAR_WORKLOAD $ALLCLEAR_PHASE end run $ALLCLEAR_EVENT_ID .* 0\$" "$log" || exit 12
    exit 0
fi
dice=$(printf %s "$ALLCLEAR_ATTEMPT" | cksum)
dice=$((${dice%% *} % 50))
case $dice in
0) sleep 0.2; echo "it was to fail" >&2; exit 1 ;;
1) echo "not now" >&2; exit 75 ;;
2) exit 11 ;;
3) sleep 3600 ;;
4 | 5 | 6) sleep 4 ;;
7 | 8 | 9) sleep 1 ;;
*) sleep 0.$dice ;;
esac
exit 0
