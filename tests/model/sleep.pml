/* How a process falls asleep beside shared memory, and how its peer wakes it:
 *   to sleep: publish "asleep", fence, poll once more, block
 *   to send:  store, fence, read the flag, ring if it is set
 * with the store buffers of x86 (a processor sees its own stores before others
 * do; later loads overtake them unless a fence stands between).
 *
 * Checked: the receiver gets all messages; no state in which it sleeps although
 * one is there (an invalid end state). -D WITHOUT_...: mutants, must be caught.
 */
#define MESSAGES 3

byte head;         /* shared: messages stored so far */
bool asleep;       /* shared: the receiver's flag */
bool bell;         /* the descriptor that it blocks on */

/* Store buffers, one entry each: what was written and is not yet visible. */
byte headBuffer;
bool headPending;
bool asleepBuffer;
bool asleepPending;

active proctype HeadBuffer() {
end: do
  :: atomic { headPending -> head = headBuffer; headPending = false }
  od
}

active proctype AsleepBuffer() {
end: do
  :: atomic { asleepPending -> asleep = asleepBuffer; asleepPending = false }
  od
}

inline storeHead(v) {
  atomic { !headPending -> headBuffer = v; headPending = true }
}
inline storeAsleep(v) {
  atomic { !asleepPending -> asleepBuffer = v; asleepPending = true }
}

active proctype Sender() {
  byte sent = 0;
  do
  :: sent < MESSAGES ->
     sent++;
     storeHead(sent);
#ifndef WITHOUT_SENDER_FENCE
     !headPending;
#endif
     if
     :: asleep -> bell = true
     :: else
     fi
  :: else -> break
  od
}

active proctype Receiver() {
  byte received = 0;
  do
  :: received < MESSAGES ->
     if
     :: head > received -> received++
     :: else -> /* nothing: to sleep */
        storeAsleep(true);
#ifndef WITHOUT_RECEIVER_FENCE
        !asleepPending;
#endif
        if
#ifndef WITHOUT_POLL_AFTER_PUBLISH
        :: head > received -> skip
        :: else ->
#else
        :: true ->
#endif
           bell;
           bell = false
        fi;
        storeAsleep(false)
     fi
  :: else -> break
  od;
  assert(received == MESSAGES)
}
