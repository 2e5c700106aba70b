/* A ring of shared memory (transport/shm/ring.h): one producer, one consumer,
 * both of which sleep, the consumer without records, the producer without room.
 *   produce: write the cell, store its sequence number, look at `asleep`, ring
 *   consume: load the number, read the cell, and after a few of them store the
 *            count of consumed ones; at each quarter look at `waits`, ring
 *   to sleep: store how in the flag, look once more, block
 * Either in epoll, until a bell rings, or on the flag (a futex), which the kernel
 * compares before it sleeps: one step, under the lock of its queue. Who wakes
 * takes the flag back, then rings or takes the sleeper out of the queue. A sleeper
 * may also get up by itself.
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
#define IN_EPOLL 1
#define ON_FLAG 2
byte asleep;
byte waits;
bool bellOfConsumer;
bool bellOfProducer;
bool consumerQueued;   /* by the kernel, on its flag */
bool producerQueued;

inline lieDown(flag, how) {
  if
  :: how = IN_EPOLL
  :: how = ON_FLAG
  fi;
  flag = how
}

inline sleep(flag, how, queued, bell) {
  if
  :: how == IN_EPOLL -> bell; bell = false
  :: how == ON_FLAG -> skip /* gets up by itself, soon */
  :: how == ON_FLAG ->
#ifndef WITHOUT_COMPARE
     atomic { if :: flag == ON_FLAG -> queued = true :: else fi };
#else
     queued = true;
#endif
     !queued
  fi
}

inline wake(flag, queued, bell, how) {
#ifndef WITHOUT_TAKEN_VALUE
  atomic { how = flag; flag = 0 };
#else
  how = flag; /* and then, if it says so, the exchange */
  if :: how != 0 -> flag = 0 :: else fi;
#endif
  if
  :: how == IN_EPOLL -> bell = true
  :: how == ON_FLAG -> queued = false
  :: else
  fi
}

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
  byte how, taken;
  do
  :: produced < RECORDS ->
     if
#ifndef WITHOUT_ROOM_CHECK
     :: produced - seen == CELLS ->
        seen = consumed;
        if
        :: produced - seen < CELLS -> skip
        :: else ->
           lieDown(waits, how);
#ifndef WITHOUT_ROOM_RECHECK
           seen = consumed;
#endif
           if
           :: produced - seen < CELLS -> skip
           :: else -> sleep(waits, how, producerQueued, bellOfProducer)
           fi;
           waits = 0
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
        wake(asleep, consumerQueued, bellOfConsumer, taken)
#endif
     fi
  :: else -> break
  od
}

active proctype Consumer() {
  byte read = 0;
  byte published = 0;
  byte how, taken;
  do
  :: read < RECORDS ->
     if
     :: sequence[read % CELLS] == (read + 1) % MODULO ->
        assert(value[read % CELLS] == read);
        read++;
        if
        :: true ->  /* the end of a round: give back what was read */
           !consumedPending;
           atomic { consumedBuffer = read; consumedPending = true };
#ifndef WITHOUT_QUARTER
           published = read;
#ifndef WITHOUT_DRAIN
           !consumedPending;
#endif
           wake(waits, producerQueued, bellOfProducer, taken)
#endif
        :: sequence[read % CELLS] == (read + 1) % MODULO -> skip
        fi
     :: else ->
        lieDown(asleep, how);
        if
#ifndef WITHOUT_RECORD_RECHECK
        :: sequence[read % CELLS] == (read + 1) % MODULO -> skip
        :: else ->
#else
        :: true ->
#endif
           sleep(asleep, how, consumerQueued, bellOfConsumer)
        fi;
        asleep = 0
     fi
  :: else -> break
  od;
  assert(read == RECORDS)
}
