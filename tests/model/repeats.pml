/* A lane's repeated operation, and a word of it that comes over the links
 * (gloo/internal/repeats.h): who is in the lane begins the one before, and marks
 * the lane if the word has been kept; then counts it, publishes, and looks at the
 * mark; who hears the word takes the count, keeps the word if the operation has
 * not begun, marks the lane if its operations repeat each other already, makes a
 * barrier, and takes the count again. What is stored plainly is seen some time
 * later, in the order of the stores, at the latest when somebody makes a barrier.
 *
 * Checked: once both are through, the word has been compared with the operation.
 * -D WITHOUT_...: mutants, must be caught.
 */
bool repeats;  /* the operation before has begun */
bool stored;   /* one operation is counted */
bool count;    /* as others see it */
bool mark;
bool kept;     /* the word, for later */
bool begun;    /* the channel has taken the count */
bool compared;
bool locked;
byte through;

#define LOCK atomic { !locked -> locked = true }
#define UNLOCK locked = false
#define BARRIER count = stored

inline take() {
  if
  :: count ->
     begun = true;
     compared = compared || kept
  :: else -> skip
  fi
}

active proctype StoreBuffer() {
  stored -> BARRIER
}

active proctype Lane() {
  LOCK;
  repeats = true;
#ifndef WITHOUT_OWN_MARK
  mark = kept;
#endif
  UNLOCK;
  stored = true;
  if
#ifndef WITHOUT_LOOK
  :: mark ->
     LOCK;
     BARRIER;
     take();
     UNLOCK
#endif
  :: else -> skip
  fi;
  through++
}

active proctype Links() {
  LOCK;
  take();
  if
  :: begun -> compared = true
  :: else ->
     kept = true;
#ifndef WITHOUT_MARK
     mark = repeats;
#endif
#ifndef WITHOUT_BARRIER
     BARRIER;
#endif
#ifndef WITHOUT_SECOND_LOOK
     take()
#else
     skip
#endif
  fi;
  UNLOCK;
  through++
}

active proctype Check() {
  through == 2;
  assert(compared)
}
