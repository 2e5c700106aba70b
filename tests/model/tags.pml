/* Of two operations of a rank with one tag, in a lane and over the links, one is
 * refused, however close they begin (transport/base/lane_claims.h): who has a
 * lane asks, then looks at the plans for the links; who takes the links plans,
 * then looks at what is in lanes, and waits for those that ask.
 *
 * Checked: one of the two runs, not none and not both. -D WITHOUT_...: mutants,
 * must be caught.
 */
#define NONE 0
#define ASKING 1
#define GONE_ON 2

byte inLane = NONE;
bool planned;
byte running;
byte refused;

active proctype Lane() {
#ifndef WITHOUT_ASKING
  inLane = ASKING;
#endif
  if
#ifndef WITHOUT_LOOK_AT_PLANS
  :: planned -> inLane = NONE; refused++
#endif
  :: else -> inLane = GONE_ON; running++
  fi
}

active proctype Links() {
  byte seen;
#ifndef WITHOUT_PLANNING_FIRST
  planned = true;
#endif
  seen = inLane;
#ifndef WITHOUT_WAITING
  do
  :: seen == ASKING -> seen = inLane
  :: else -> break
  od;
#endif
  if
  :: seen == NONE -> planned = true; running++
  :: else -> planned = false; refused++
  fi
}

active proctype Check() {
  running + refused == 2;
  assert(running == 1)
}
