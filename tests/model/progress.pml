/* The progress domain (transport/base/progress.cc): who drives, who sleeps, and
 * that nobody sleeps too long. Each step below is one access to shared state;
 * names are those of the C++.
 *
 * Checked: never two drivers; no state in which everybody sleeps although a
 * waiter's wait is over or something has arrived (an invalid end state).
 * The mutants (-D WITHOUT_...) leave out one rule each and must be caught.
 *
 * -D LEVEL: the poller's descriptor is readable as long as there is anything
 * (TCP). Otherwise it says so once after each arming (verbs, shared memory).
 * -D WORDS: a driver may sleep on words of memory instead (futexes), that of the
 * link and its own. The kernel compares them before it sleeps, one step under the
 * lock of its queue; who wakes changes the word first. It may also get up by
 * itself, soon, and then sleep on the descriptor, which other events make readable.
 * -D GLANCE: waiters glance before they wait. -D VISIT: a thread that does not
 * wait polls a round. -D POST: one that does not wait leaves something that only
 * a poll can move, and of which no event tells. -D START: one that does not wait
 * starts what waiter 0 waits for, and which is complete at once; waiter 1's
 * message does not come before waiter 0 has gone.
 */
#define WAITERS 2
#define NOBODY 2 /* for messages that no thread waits for */

bool mutex;
bool driving, deep, backgroundAsleep, stopping;
byte driverAsleep; /* how */
bool drives; /* modulo 2: only "has changed since" matters */
bool driverBell, backgroundBell;
bool done[WAITERS], listed[WAITERS], woken[WAITERS], expired[WAITERS];
byte drivers; /* threads in drive(), for the assertion */
#ifdef START
byte driver; /* which waiter, while it is asleep */
bool gone;   /* waiter 0 */
#endif

/* The world: messages that have arrived, by whom they complete. */
bool arrived[3], handled[3];
#define BY_DESCRIPTOR 1
#define ON_WORDS 2
byte armed; /* how */
bool readable;
bool driverWord; /* set: the driver is to get up */
bool queued;     /* the driver, by the kernel, on its words */

#define LOCK atomic { !mutex -> mutex = true }
#define UNLOCK mutex = false

#ifdef LEVEL
#define FD (arrived[0] || arrived[1] || arrived[2])
#else
#define FD readable
#endif

/* Takes what has arrived. */
inline take(moved) {
  d_step {
    moved = false;
    if :: arrived[0] -> arrived[0] = false; handled[0] = true; done[0] = true;
                        moved = true :: else fi;
    if :: arrived[1] -> arrived[1] = false; handled[1] = true; done[1] = true;
                        moved = true :: else fi;
    if :: arrived[2] -> arrived[2] = false; handled[2] = true;
                        moved = true :: else fi
  }
}

/* One round of the pollers. The worst case: it also takes back the arming, and
 * the event that the descriptor holds. */
inline poll(moved) {
  atomic { take(moved); readable = false; armed = 0 }
}

inline wakeReadySleepers() {
  d_step {
    if :: listed[0] && done[0] -> woken[0] = true :: else fi;
    if :: listed[1] && done[1] -> woken[1] = true :: else fi
  }
}

/* armAll() || poll() */
inline armAndPoll(how, moved) {
  moved = false;
#ifndef WITHOUT_ARM
  armed = how;
#endif
#ifndef WITHOUT_POLL_AFTER_ARM
  take(moved)
#endif
}

inline ringDriver() {
  if
#ifndef WITHOUT_DRIVER_WORD
  :: driverAsleep == ON_WORDS ->
     driverAsleep = 0;
     driverWord = true;
     queued = false
  :: driverAsleep == BY_DESCRIPTOR -> driverAsleep = 0; driverBell = true
#else
  :: driverAsleep != 0 -> driverAsleep = 0; driverBell = true
#endif
  :: else
  fi
}

inline ringAsleep() {
  ringDriver();
  if :: backgroundAsleep -> backgroundAsleep = false; backgroundBell = true
     :: else
  fi
}

inline changed() {
  wakeReadySleepers();
  ringAsleep()
}

inline leaveRole() {
#ifndef WITHOUT_HANDOFF
  if
  :: listed[0] && woken[0] || listed[1] && woken[1] -> skip
  :: else ->
     if
     :: listed[0] -> woken[0] = true
     :: listed[1] -> woken[1] = true
     :: !listed[0] && !listed[1] && deep -> deep = false; backgroundBell = true
     :: else
     fi
  fi
#else
  skip
#endif
}

#define READY (done[me] || expired[me])

/* Before wait(), which is not called if this was enough. */
inline glance() {
  if
#ifndef WITHOUT_GLANCE_CHECK
  :: !driving && !backgroundAsleep ->
#else
  :: !driving ->
#endif
     drives = !drives;
     poll(moved);
     if :: moved -> wakeReadySleepers() :: else fi;
     if :: READY -> goto over :: else fi
  :: skip /* crowded, or somebody wants the lock */
  fi
}

proctype Waiter(byte me) {
  bool moved;
#ifdef WORDS
  byte how;
#else
#define how BY_DESCRIPTOR
#endif
  LOCK;
#ifdef GLANCE
  if :: !READY -> glance() :: else fi;
#endif
  do
  :: READY -> break
  :: else ->
     if
     :: driving -> /* sleep() */
        d_step { listed[me] = true; woken[me] = false };
        UNLOCK;
        woken[me] || expired[me];
        LOCK;
        listed[me] = false
     :: else -> /* drive() */
        driving = true;
        drives = !drives;
        drivers++;
        assert(drivers == 1);
#ifndef WITHOUT_BELL_AT_DRIVE
        if
        :: backgroundAsleep -> backgroundAsleep = false; backgroundBell = true
        :: else
        fi;
#endif
        do
        :: poll(moved);
           if :: moved -> wakeReadySleepers() :: else fi;
           if :: READY -> break :: else fi;
           UNLOCK; /* letOthersIn() */
           LOCK;
           if
           :: moved -> skip
           :: !moved -> skip /* spins */
           :: !moved -> /* block() */
#ifdef WORDS
              if :: how = ON_WORDS :: how = BY_DESCRIPTOR fi;
              driverWord = false;
#endif
#ifdef START
              driver = me;
#endif
              driverAsleep = how;
#ifndef WITHOUT_READY_BEFORE_BLOCK
              if
              :: READY -> driverAsleep = 0; goto again
              :: else
              fi;
#endif
              armAndPoll(how, moved);
              if
              :: moved -> driverAsleep = 0; wakeReadySleepers()
              :: else ->
                 UNLOCK;
#ifdef WORDS
                 if
                 :: how == BY_DESCRIPTOR -> FD || driverBell || expired[me]
                 :: how == ON_WORDS -> skip /* gets up by itself */
                 :: how == ON_WORDS ->
#ifndef WITHOUT_COMPARE
                    atomic {
                      if
                      :: armed == ON_WORDS && !driverWord -> queued = true
                      :: else
                      fi
                    };
#else
                    queued = true;
#endif
                    !queued || expired[me]
                 fi;
#else
                 FD || driverBell || expired[me];
#endif
                 LOCK;
#ifdef WORDS
                 queued = false;
                 how = 0;
#endif
                 driverAsleep = 0;
                 driverBell = false
              fi
           fi;
again:     skip
        od;
        drivers--;
        driving = false
     fi
  od;
  if :: !driving -> leaveRole() :: else fi;
#ifdef GLANCE
over:
#endif
  UNLOCK
#ifdef START
  ;
  if :: me == 0 -> gone = true :: else fi
#endif
}

/* visit(): a thread that does not wait, but polls a round. */
proctype Visitor() {
  bool moved;
  LOCK;
  drives = !drives;
#ifndef WITHOUT_VISITORS_BELLS
  changed();
#endif
  poll(moved);
  if :: moved -> wakeReadySleepers() :: else fi;
  UNLOCK
}

proctype Background() {
  bool before, moved;
doze:
  do
  :: before = drives;
     skip; /* 1 ms, or the bell */
     backgroundBell = false;
     if
     :: stopping -> goto out
     :: else
     fi;
     if
     :: drives != before -> skip
     :: else ->
        if
        :: !driving -> break
        :: else ->
           deep = true;
           if
#ifndef WITHOUT_DEEP_RECHECK
           :: driving -> backgroundBell
           :: else
#else
           :: true -> backgroundBell
#endif
           fi;
           deep = false
        fi
     fi
  od;
  LOCK; /* tend() */
  do
  :: stopping || driving -> break
  :: else ->
     poll(moved);
     if
     :: moved -> wakeReadySleepers(); UNLOCK; LOCK
     :: else ->
        backgroundAsleep = true;
        armAndPoll(BY_DESCRIPTOR, moved);
        if
        :: moved -> backgroundAsleep = false; wakeReadySleepers()
        :: else ->
           UNLOCK;
end:       FD || backgroundBell;
           LOCK;
           backgroundAsleep = false;
           backgroundBell = false
        fi
     fi
  od;
  UNLOCK;
  goto doze;
out: skip
}

/* A message, for a waiter or for nobody. */
proctype Arrival(byte to) {
#ifdef START
  to != 1 || gone;
#endif
#ifdef WORDS
  byte taken;
  d_step {
    arrived[to] = true;
    taken = armed;
    armed = 0;
    if :: taken == BY_DESCRIPTOR -> readable = true; taken = 0 :: else fi
  };
  if :: taken == ON_WORDS -> queued = false; taken = 0 :: else fi;
#else
  d_step {
    arrived[to] = true;
    if :: armed != 0 -> readable = true; armed = 0 :: else fi
  };
#endif
  handled[to]
}

/* Another thread ends a wait: abortWaitRecv(), a failure. */
proctype Changer(byte who) {
  LOCK;
  done[who] = true;
  changed();
  UNLOCK
}

#ifdef START
/* Who gives the lock back, after touched(). */
inline wakeTouched() {
#ifndef WITHOUT_TOUCHED_SLEEPERS
  wakeReadySleepers();
#endif
#ifndef WITHOUT_TOUCHED_DRIVER
  if
  :: driverAsleep != 0 && (done[driver] || expired[driver]) -> ringDriver()
  :: else
  fi
#else
  skip
#endif
}

proctype Starter() {
  LOCK;
  done[0] = true;
  wakeTouched();
  UNLOCK
}
#endif

/* send() where the link has no room, although the peer takes what is there. */
proctype Poster() {
  LOCK;
  arrived[NOBODY] = true;
#ifndef WITHOUT_NUDGE
  ringAsleep();
#endif
  UNLOCK;
  handled[NOBODY]
}

proctype Clock(byte who) { expired[who] = true }

init {
  atomic {
    run Waiter(0);
    run Waiter(1);
    run Background();
#ifdef VISIT
    run Visitor();
#endif
#ifdef POST
    run Poster();
#else
    run Arrival(NOBODY);
#endif
    /* Waiter 1's message always comes; waiter 0 is ended in some other way. */
    run Arrival(1);
#ifdef START
    run Starter()
#else
    if
    :: run Arrival(0)
    :: run Changer(0)
    :: run Clock(0)
    fi
#endif
  }
}
