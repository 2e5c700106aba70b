/* Which operations have a lane (transport/base/lane_claims.h): two ranks, each
 * with a thread for each of two tags, and one lane. Each thread does one or two
 * operations; none waits for the other rank, but no rank is ahead of another in
 * a lane by two operations (gloo/internal/direct.h: a round begins when all have
 * published the one before).
 *
 * Checked: both ranks decide alike on each operation of a tag, and nobody is in
 * the lane with two tags. -D WITHOUT_...: mutants, must be caught.
 */
#define OPERATIONS (2 - tag)
#define FREE 0
#define TAKEN 9

bool locked;
byte name = FREE;      /* of the lane: tag + 1 */
byte count[2];         /* of each rank: odd inside */
byte known[2];
bool refusing;
byte found[4];         /* 2 * tag + rank: operations over the links */

byte decided[4];       /* 2 * tag + operation: 1 lane, 2 links */
byte inside[2];        /* with each tag */
byte done[4];          /* 2 * tag + rank: operations in the lane */

inline decide(what) {
  assert(decided[2 * tag + i] == 0 || decided[2 * tag + i] == what);
  decided[2 * tag + i] = what
}

proctype Thread(byte rank; byte tag) {
  byte i = 0;
  byte before;
  byte old;
  bool mine;
  do
  :: i == OPERATIONS -> break
  :: else ->
     mine = false;
     /* The lane that the tag had before. */
     if
     :: known[rank] == tag + 1 ->
        atomic {
          before = count[rank];
          if
          :: before % 2 == 0 -> count[rank] = before + 1; mine = true
          :: else
          fi
        };
        if
#ifndef WITHOUT_LOOK
        :: mine && name != tag + 1 -> count[rank] = before; mine = false
#endif
        :: else
        fi
     :: else
     fi;
again:
     if
     :: mine -> skip
     :: else ->
        atomic { !locked -> locked = true };
        if
        :: name == tag + 1 -> mine = true
        :: else ->
           if
#ifndef WITHOUT_REFUSALS
           :: refusing -> skip
           :: else ->
#else
           :: true ->
#endif
              old = name;
              name = TAKEN;
              if
#ifndef WITHOUT_EQUAL
              :: count[0] == count[1] && count[0] % 2 == 0 ->
#else
              :: count[0] % 2 == 0 && count[1] % 2 == 0 ->
#endif
                 name = tag + 1; mine = true
              :: else -> name = old
              fi
           fi;
           if
           :: mine -> skip
           :: else ->
              found[2 * tag + rank]++;
              refusing = found[0] != found[1] || found[2] != found[3];
              decide(2)
           fi
        fi;
        if
        :: mine ->
           known[rank] = tag + 1;
           atomic {
             if
             :: count[rank] % 2 == 0 -> count[rank]++
             :: else ->
                /* The other thread gives way, or leaves. */
                mine = false;
                locked = false;
                goto again
             fi
           }
        :: else
        fi;
        locked = false
     fi;
     if
     :: mine ->
        decide(1);
        inside[tag]++;
        assert(inside[1 - tag] == 0);
        /* The round before. */
        done[2 * tag + 1 - rank] + 1 >= done[2 * tag + rank];
        done[2 * tag + rank]++;
        inside[tag]--;
        count[rank]++
     :: else
     fi;
     i++
  od
}

init {
  atomic {
    run Thread(0, 0); run Thread(0, 1); run Thread(1, 0); run Thread(1, 1)
  }
}
