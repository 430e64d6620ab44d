#!/usr/bin/env bash
# Trains a network on one GPU in some minutes: bash docs/lab/gpu_quarter.sh default|shape [SECONDS]
#
# default: trains the shipped network further, on 19x19 above all. shape: trains a network of another shape from random
# weights on the same positions. Three processes play games for positions while the network trains; the first gradient
# steps use games of people, and training restarts twice to read the new positions. Copies of the network and of its
# curves go to $OUT every minute; the script ends 60 s before SECONDS.
#
# Needs the folder kit: teacher.bin.gz (strong network), train (shards of games), validation.npz.xz, and the Python
# packages that the machine lacks. Variables: BATCH, PLAYED (games at a time), SHARD (positions), WORKERS, STEPS (planned),
# SHAPE (options).
set -u
kind=${1:?"default or shape"} all=$((${2:-600} - 60)) out=${OUT:-runs/out}
export PYTHONPATH=.:kit PYTHONUNBUFFERED=1 OMP_NUM_THREADS=1
keima="python3 -m gtp.cli" played=${PLAYED:-256} shard=${SHARD:-20000} shape=${SHAPE:---blocks 10 --channels 64 --pool-every 1}
begin="--start default" rate=1.5e-3
[ "$kind" = shape ] && begin=$shape rate=3e-3

play() { # SIZE SHARE-OF-FULL-SEARCHES KOMI
    nice $keima data reached default --size "$1" --full-share "$2" --komi "$3" --at-once "$played" \
        --games-per-shard "$shard" --positions 3000000 --out "runs/reached-$1" 2>"runs/reached-$1.log" &
    players="$players $!"
}

learn() { # UNTIL STEPS: train until UNTIL seconds after the script's start, as a part of a run of STEPS
    local found=(--boards 19=2.4) entry
    for entry in 9=.6 13=.2 19; do
        ls runs/reached-${entry%=*}/*.npz.xz >/dev/null 2>&1 || continue
        found+=(--games "runs/reached-${entry%=*}")
        [ $entry = 19 ] || found+=(--boards $entry)
    done
    [ $1 -gt $SECONDS ] || return
    timeout -s INT -k 15 $(($1 - SECONDS)) $keima train dual --games kit/train "${found[@]}" --reached-share 0.6 \
        --teacher kit/teacher.bin.gz --teacher-share 0.8 --validation kit/validation.npz.xz --out "runs/$kind" $begin \
        --optimizer muon --rate $rate --decay-share 0.8 --warmup 200 \
        --value-weight 2 --score-weight 2.5 --ownership-weight 1.5 --batch "${BATCH:-384}" --echo 3 \
        --workers "${WORKERS:-7}" --validate-every 100000 --steps "$2" \
        --rules chinese=4 --rules tromp-taylor=4 --rules japanese=2 \
        --komi usual=5 --komi 5.5..9.5=4 --komi=-5..20=1 2>>"runs/$kind.log"
    step=$(tail -n 1 "runs/$kind/curves.csv" | grep -o '^[0-9]*')
    echo "$SECONDS s: step ${step:=0} of $2; ${found[*]}"
}

keep() { # copy what there is to the folder that comes back; each copy is whole, since the run replaces its files
    cp "runs/$kind/network.safetensors" "runs/$kind/curves.csv" "runs/$kind.log" "$out" 2>/dev/null
}

mkdir -p runs "$out"
players="" step=0
(while sleep 60; do keep; done) &
keeper=$!
trap 'kill $players $keeper 2>/dev/null; keep' EXIT
play 19 .03 7.5
play 9 .05 7
play 13 .04 7.5
# More than the time allows, so that the learning rate does not reach zero before the last part.
planned=${STEPS:-25000}
learn $((all * 3 / 10)) "$planned"
learn $((all * 5 / 10)) "$planned"
before=$step at=$SECONDS
learn $((all * 7 / 10)) "$planned"
kill $players
# The rest of the time at the rate of the last part; a step takes two thirds of the time without games beside it. The
# last step is to be the run's last, so that the learning rate ends at zero.
learn $all $((step + (step - before) * (all - SECONDS - 15) * 3 / (2 * (SECONDS - at))))
