/* A ring of shared memory (transport/shm/ring.h): one producer, one consumer,
 * both of which sleep, the consumer without records, the producer without room.
 *   produce: write the cell, store its sequence number, look at `asleep`, ring
 *   consume: load the number, read the cell, and after a few of them store the
 *            count of consumed ones; at each quarter look at `waits`, ring
 *   to sleep: store the flag, look once more, block
 * Sequence numbers are compared modulo a small power of two, as they would wrap.
 *
 * With the store buffers of x86: the stores that are followed by a look at a
 * flag (sequentially consistent ones) drain the buffer before they go on; the
 * others may be seen late.
 *
 * Checked: every record is consumed once and in order, none before it is whole;
 * nobody sleeps for ever. -D WITHOUT_...: mutants, must be caught.
 */
#define CELLS 4        /* a quarter is one cell */
#define RECORDS 7
#define MODULO 8       /* of sequence numbers: more than CELLS */

byte sequence[CELLS];
byte value[CELLS];
byte consumed;         /* shared: count, as published */
bool asleep;
bool waits;
bool bellOfConsumer;
bool bellOfProducer;

/* The consumer's store buffer for `consumed`, one entry. */
byte consumedBuffer;
bool consumedPending;

active proctype ConsumedBuffer() {
end: do
  :: atomic { consumedPending -> consumed = consumedBuffer;
              consumedPending = false }
  od
}

active proctype Producer() {
  byte produced = 0;
  byte seen = 0;       /* consumed, as far as this side has looked */
  do
  :: produced < RECORDS ->
     if
#ifndef WITHOUT_ROOM_CHECK
     :: produced - seen == CELLS ->
        seen = consumed;
        if
        :: produced - seen < CELLS -> skip
        :: else ->
           waits = true;
#ifndef WITHOUT_ROOM_RECHECK
           seen = consumed;
#endif
           if
           :: produced - seen < CELLS -> skip
           :: else -> bellOfProducer; bellOfProducer = false
           fi;
           waits = false
        fi
     :: produced - seen < CELLS ->
#else
     :: true ->
#endif
#ifdef WITHOUT_RELEASE
        sequence[produced % CELLS] = (produced + 1) % MODULO;
        value[produced % CELLS] = produced;
#else
        value[produced % CELLS] = produced;
        sequence[produced % CELLS] = (produced + 1) % MODULO;
#endif
        produced++;
#ifndef WITHOUT_BELL
        if
        :: atomic { asleep -> asleep = false }; bellOfConsumer = true
        :: else
        fi
#endif
     fi
  :: else -> break
  od
}

active proctype Consumer() {
  byte taken = 0;
  byte published = 0;
  do
  :: taken < RECORDS ->
     if
     :: sequence[taken % CELLS] == (taken + 1) % MODULO ->
        assert(value[taken % CELLS] == taken);
        taken++;
        if
        :: true ->  /* the end of a round: give back what was taken */
           !consumedPending;
           atomic { consumedBuffer = taken; consumedPending = true };
#ifndef WITHOUT_QUARTER
           published = taken;
#ifndef WITHOUT_DRAIN
           !consumedPending;
#endif
           if
           :: atomic { waits -> waits = false }; bellOfProducer = true
           :: else
           fi
#endif
        :: sequence[taken % CELLS] == (taken + 1) % MODULO -> skip
        fi
     :: else ->
        asleep = true;
        if
#ifndef WITHOUT_RECORD_RECHECK
        :: sequence[taken % CELLS] == (taken + 1) % MODULO -> skip
        :: else ->
#else
        :: true ->
#endif
           bellOfConsumer;
           bellOfConsumer = false
        fi;
        asleep = false
     fi
  :: else -> break
  od;
  assert(taken == RECORDS)
}
