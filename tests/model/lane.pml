/* The rounds of a lane (gloo/internal/direct.h): every rank waits until all have
 * published the round before, writes its slot of this round, publishes, and
 * reads the slots of those that it chooses to wait for. Slots are used in turn;
 * with -D RANKS=2 they are swapped as well. With -D BROADCASTS=0 or 1, rank 0
 * alone writes in the even or odd rounds, all slots of them. With -D BETWEEN a
 * rank writes for each other one apart, where both of them write in turn; with
 * -D OFFERED as well, rank 0 offers memory in the first round and writes nothing
 * there, whereupon nobody reads what the others have written, and the turn is
 * still the same. To sleep: set the bell, look again, block; to publish: store the
 * round, look at the bells. (All four are sequentially consistent, as here. With
 * -D BARRIERS the number of a round, stored plainly, is seen some time later, at
 * the latest when somebody makes a barrier: who is about to sleep, between its
 * bell and its look.)
 *
 * With -D STAGED as well, the rounds of a staged reduction. With -D HALVED=n
 * and two ranks, those of a reduction by halves of n chunks, and of an operation
 * after it that swaps.
 *
 * Checked: who reads a slot finds what its owner wrote in that round, however
 * often it looks; nobody sleeps for ever (an invalid end state).
 * -D WITHOUT_...: mutants, must be caught.
 */
#ifndef RANKS
#define RANKS 3
#endif
#define ROUNDS 3

byte published[RANKS]; /* last round */
byte bell[RANKS];      /* it sleeps, for the rank before this; 0: not */
byte slots[6];         /* the round that was written; 2 * RANKS are used */

#if RANKS == 2
#define SLOT(rank, round) ((rank + round) & 1)
#else
#define SLOT(rank, round) (RANKS * ((round) & 1) + (rank))
#endif

/* Where `from` writes for `to`: see slotBetween(). */
#ifdef BETWEEN
byte places[2 * RANKS * RANKS];
bit turns[2 * RANKS]; /* of each rank, by half */
#define TURN(round) turns[2 * _pid + ((round) & 1)]
#define SWAP_PLACES(round) TURN(round) = 1 - TURN(round)
#ifdef WITHOUT_HALVES
#define HALF(round) 0
#else
#define HALF(round) ((round) & 1)
#endif
#define PLACE(from, to, round)                          \
  (RANKS * RANKS * HALF(round) +                        \
   (TURN(round) -> RANKS * (to) + (from) : RANKS * (from) + (to)))
#define OWN(round) other = 0; \
  do \
  :: other == RANKS -> break \
  :: else -> places[PLACE(_pid, other, round)] = round; other++ \
  od
#define FOUND(round) places[PLACE(other, _pid, round)]
#else
#define SWAP_PLACES(round) skip
#define OWN(round) slots[SLOT(_pid, round)] = round
#define FOUND(round) slots[SLOT(other, round)]
#endif

#ifdef BROADCASTS
#define WHOLE(round) (((round) & 1) == BROADCASTS)
#else
#define WHOLE(round) false
#endif

#ifdef BARRIERS
byte stored[RANKS]; /* rounds; to be seen */
#define PUBLISH(number) stored[_pid] = number
#ifdef WITHOUT_BARRIER
#define BARRIER skip
#elif RANKS == 3
#define BARRIER                \
  atomic {                     \
    published[0] = stored[0];  \
    published[1] = stored[1];  \
    published[2] = stored[2]   \
  }
#else
#define BARRIER atomic { published[0] = stored[0]; published[1] = stored[1] }
#endif
#else
#define PUBLISH(number) published[_pid] = number
#define BARRIER skip
#endif

/* Until `rank` has published `number`. */
inline await(rank, number) {
  do
  :: published[rank] >= number -> break
  :: else ->
#ifndef WITHOUT_BELL_FIRST
     bell[_pid] = rank + 1;
     BARRIER;
#else
     BARRIER;
     bell[_pid] = rank + 1;
#endif
     if
#ifndef WITHOUT_RECHECK
     :: published[rank] >= number -> bell[_pid] = 0; break
     :: else ->
#else
     :: true ->
#endif
        bell[_pid] == 0
     fi
  od
}

#ifdef OFFERED
#define OFFERS(round) ((round) == 1)
#else
#define OFFERS(round) false
#endif

#ifdef STAGED
/* A staged reduction, where three steps share a round: what came in two rounds
 * before goes out (each rank's result lies where its slice for itself would),
 * the next comes in, and the one of the round before is reduced. A result is
 * written one round later than what is beside it, and read another one later,
 * while the next comes in beside it.
 */
#undef ROUNDS
#define ROUNDS 5
#ifdef WITHOUT_DIAGONAL
#define RESULT(rank, round) PLACE(rank, (rank + 1) % RANKS, round)
#else
#define RESULT(rank, round) PLACE(rank, rank, round)
#endif

active [RANKS] proctype Rank() {
  byte round = 1;
  byte other;
  do
  :: round > ROUNDS -> break
  :: else ->
     other = 0;
     do
     :: other == RANKS -> break
     :: else -> await(other, round - 1); other++
     od;
     other = 0;
     do
     :: other == RANKS -> break
     :: else ->
        if
        :: other != _pid ->
           assert(round < 3 || places[RESULT(other, round - 2)] == round - 2);
           places[PLACE(_pid, other, round)] = round;
           assert(round < 2 || places[PLACE(other, _pid, round - 1)] == round - 1)
        :: else
        fi;
        other++
     od;
     places[RESULT(_pid, round - 1)] = round - 1;
     if
     :: round > 1 -> SWAP_PLACES(round - 1)
     :: else
     fi;
     PUBLISH(round);
     other = 0;
     do
     :: other == RANKS -> break
     :: else ->
        if
        :: bell[other] == _pid + 1 -> bell[other] = 0
        :: else
        fi;
        other++
     od;
     round++
  od
}
#elif defined(HALVED)
/* A reduction by halves, of HALVED chunks: in a round, what the other rank has
 * reduced goes out of this one's place and the next comes in, then what came in
 * in the round before is reduced in the other's place. The last goes out when
 * that is done, with nothing published after it. Then comes an operation that
 * swaps its slots.
 */
#undef ROUNDS
#define ROUNDS (HALVED + 3)
#define SUM 100
#ifdef WITHOUT_HALVES
#define FIXED(rank, round) (rank)
#elif defined(WITHOUT_ORDER)
#define FIXED(rank, round) (2 * ((round) & 1) + 1 - (rank))
#else
#define FIXED(rank, round) (2 * ((round) & 1) + (rank))
#endif

active [RANKS] proctype Rank() {
  byte round = 1;
  do
  :: round > ROUNDS -> break
  :: else ->
     await(1 - _pid, round - 1);
     assert(round < 3 || round > HALVED + 2 ||
            slots[FIXED(_pid, round)] == SUM + round - 2);
     if
     :: round <= HALVED -> slots[FIXED(_pid, round)] = round
     :: round > HALVED + 1 -> slots[SLOT(_pid, round)] = round
     :: else
     fi;
     if
     :: 1 < round && round <= HALVED + 1 ->
        assert(slots[FIXED(1 - _pid, round - 1)] == round - 1);
        slots[FIXED(1 - _pid, round - 1)] = SUM + round - 1
     :: else
     fi;
     PUBLISH(round);
     if
     :: bell[1 - _pid] == _pid + 1 -> bell[1 - _pid] = 0
     :: else
     fi;
     if
     :: round > HALVED + 1 ->
        await(1 - _pid, round);
        assert(slots[SLOT(1 - _pid, round)] == round)
     :: else
     fi;
     round++
  od
}
#else
active [RANKS] proctype Rank() {
  byte round = 1;
  byte other;
  do
  :: round > ROUNDS -> break
  :: else ->
#ifndef WITHOUT_BEGIN
     other = 0;
     do
     :: other == RANKS -> break
     :: else -> await(other, round - 1); other++
     od;
#endif
     if
     :: OFFERS(round) && _pid == 0 -> skip
     :: !WHOLE(round) && !(OFFERS(round) && _pid == 0) -> OWN(round)
     :: WHOLE(round) && _pid == 0 ->
        other = 0;
        do
        :: other == RANKS -> break
        :: else -> slots[SLOT(other, round)] = round; other++
        od
     :: else
     fi;
     PUBLISH(round);
     other = 0;
     do
     :: other == RANKS -> break
     :: else ->
#ifndef WITHOUT_RING
        if
        :: bell[other] == _pid + 1 -> bell[other] = 0
        :: else
        fi;
#endif
        other++
     od;
     other = 0;
     do
     :: other == RANKS || OFFERS(round) -> break
     :: other < RANKS && !OFFERS(round) -> other++ /* does not need this one */
     :: other < RANKS && !OFFERS(round) && (other != _pid || WHOLE(round)) ->
        if
        :: WHOLE(round) -> await(0, round)
        :: else -> await(other, round)
        fi;
        assert(FOUND(round) == round);
        assert(FOUND(round) == round); /* still */
        other++
     od;
#ifdef OFFERED
     other = 0;
     do
     :: other == RANKS || !OFFERS(round) -> break
     :: other < RANKS && OFFERS(round) -> await(other, round); other++
     od;
#endif
     if
#ifndef WITHOUT_USE
     :: !OFFERS(round) -> SWAP_PLACES(round)
#else /* who has written */
     :: !(OFFERS(round) && _pid == 0) -> SWAP_PLACES(round)
#endif
     :: else
     fi;
     round++
  od
}
#endif

#ifdef BARRIERS /* after the ranks, whose numbers count from 0 */
active proctype Memory() {
end:
  do
  :: atomic { published[0] < stored[0] -> published[0]++ }
  :: atomic { published[1] < stored[1] -> published[1]++ }
#if RANKS == 3
  :: atomic { published[2] < stored[2] -> published[2]++ }
#endif
  od
}
#endif
