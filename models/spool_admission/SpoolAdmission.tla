--------------------------- MODULE SpoolAdmission ---------------------------
(***************************************************************************)
(* How a query file gets from a spool folder into the store (F364).        *)
(*                                                                         *)
(* Producers publish files into incoming/. Any number of consumers, which  *)
(* are processes that may die at every step, make passes over the spool:   *)
(* lock, list, read each file stably, commit a batch of what was read in   *)
(* one durable transaction, then move each file of the batch to accepted/  *)
(* or, with a sidecar that says why, to rejected/.                         *)
(*                                                                         *)
(* Decided here                                                            *)
(*  - A name stands for one published file; its content may be replaced    *)
(*    by its producer for as long as it is in incoming/.                   *)
(*  - What a consumer knows of a file is what it read at Open. A later     *)
(*    Replace makes that knowledge stale; Verify and Move notice it and    *)
(*    defer the file to the next pass.                                     *)
(*  - Killing a process and starting another in its place is one step.     *)
(*                                                                         *)
(* Left out, and why                                                       *)
(*  - A lock path that is replaced after it was verified: flock binds only *)
(*    those who keep to the protocol (F364 section 8).                     *)
(*  - The instants between the last identity check and the rename inside   *)
(*    Move: no file system offers both in one call.                        *)
(*  - A name published again after its file has left incoming/: that is    *)
(*    another file, which gets a fresh name where the old one is taken.    *)
(*    Half of the tours start with such names, and recordings hold them.   *)
(*  - The time budget of a pass: a pass that stops early is a Release      *)
(*    ahead of its time, and the next pass lists again.                    *)
(***************************************************************************)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Consumers,   \* the processes that serve the spool
    Names,       \* file names, a sequence in the order in which a pass takes them
    Good, Bad,   \* contents that are queries, and contents that are not
    Torn,        \* what a read sees of a file that is replaced meanwhile
    Nothing,     \* the content of a name that was never published
    Nobody,      \* the holder of a free lock
    BatchLimit   \* files read before they are committed

Files    == {Names[i] : i \in 1..Len(Names)}
Contents == Good \cup Bad

ASSUME /\ Good \cap Bad = {} /\ Torn \notin Contents /\ Nothing \notin Contents
       /\ Nobody \notin Consumers
       /\ Cardinality(Files) = Len(Names)
       /\ BatchLimit \in Nat \ {0}

VARIABLES
    where,     \* file -> the set of folders it is in
    content,   \* file -> what is in it now
    sidecar,   \* file -> what rejected/ says about it: "none", "fits", or "misfits" when it was replaced since
    rows,      \* content -> how many stored queries have it
    lockfile,  \* "regular", or "foreign": a link, a FIFO, a replaced inode
    holder,    \* the consumer whose descriptor holds the kernel lock
    pc,        \* consumer -> the step it takes next
    todo,      \* consumer -> listed files it has not opened yet, in order
    batch,     \* consumer -> the files read and not settled: name, content as read, sidecar written
    stale      \* consumer -> the files of its batch that were replaced since it opened them

vars == <<where, content, sidecar, rows, lockfile, holder, pc, todo, batch, stale>>
files == <<where, content, sidecar>>

Steps   == {"idle", "list", "open", "verify", "commit", "sidecar", "move", "release"}
Folders == {"incoming", "accepted", "rejected"}
Entries == [file : Files, content : Contents, explained : BOOLEAN]

WhereType    == where \in [Files -> SUBSET Folders]
ContentType  == content \in [Files -> Contents \cup {Nothing}]
SidecarType  == sidecar \in [Files -> {"none", "fits", "misfits"}]
RowsType     == rows \in [Contents \cup {Torn} -> Nat]
LockfileType == lockfile \in {"regular", "foreign"}
HolderType   == holder \in Consumers \cup {Nobody}
PcType       == pc \in [Consumers -> Steps]
TodoType     == \A c \in Consumers : todo[c] \in Seq(Files)
BatchType    == \A c \in Consumers : batch[c] \in Seq(Entries) /\ Len(batch[c]) <= BatchLimit
StaleType    == stale \in [Consumers -> SUBSET Files]

\* SPOOL-0: every variable has its type.
TypeOK == /\ WhereType /\ ContentType /\ SidecarType /\ RowsType /\ LockfileType
          /\ HolderType /\ PcType /\ TodoType /\ BatchType /\ StaleType

Init == /\ where = [f \in Files |-> {}]
        /\ content = [f \in Files |-> Nothing]
        /\ sidecar = [f \in Files |-> "none"]
        /\ rows = [k \in Contents \cup {Torn} |-> 0]
        /\ lockfile \in {"regular", "foreign"}
        /\ holder = Nobody
        /\ pc = [c \in Consumers |-> "idle"]
        /\ todo = [c \in Consumers |-> <<>>]
        /\ batch = [c \in Consumers |-> <<>>]
        /\ stale = [c \in Consumers |-> {}]

-----------------------------------------------------------------------------
(* The consumer's place in its pass.                                       *)

FilesOf(entries) == {entries[i].file : i \in 1..Len(entries)}
GoodIn(entries)  == {i \in 1..Len(entries) : entries[i].content \in Good}
Unexplained(entries) == {i \in 1..Len(entries) : entries[i].content \in Bad /\ ~entries[i].explained}
First(indices)   == CHOOSE i \in indices : \A j \in indices : i <= j

\* What settles a batch that is committed: all sidecars, then all moves.
Settle(entries, left) ==
    CASE entries = <<>> /\ left = <<>>                      -> "release"
      [] entries = <<>> /\ left # <<>>                      -> "open"
      [] entries # <<>> /\ Unexplained(entries) # {}        -> "sidecar"
      [] OTHER                                              -> "move"

\* What follows when a file was read or deferred.
AfterRead(entries, left) ==
    IF left # <<>> /\ Len(entries) < BatchLimit THEN "open"
    ELSE IF GoodIn(entries) # {}                THEN "commit"
    ELSE Settle(entries, left)

\* The pass is over for c, whether it came to its end or not.
Forget(c) == /\ todo' = [todo EXCEPT ![c] = <<>>]
             /\ batch' = [batch EXCEPT ![c] = <<>>]
             /\ stale' = [stale EXCEPT ![c] = {}]

-----------------------------------------------------------------------------
(* System: one admission pass.                                             *)

\* The three ways of TryLock.
Acquire(c) ==
    /\ pc[c] = "idle" /\ lockfile = "regular" /\ holder = Nobody
    /\ holder' = c
    /\ pc' = [pc EXCEPT ![c] = "list"]
    /\ UNCHANGED <<files, rows, lockfile, todo, batch, stale>>

Busy(c) ==
    /\ pc[c] = "idle" /\ lockfile = "regular" /\ holder # Nobody
    /\ UNCHANGED vars

RefuseLock(c) ==
    /\ pc[c] = "idle" /\ lockfile = "foreign"
    /\ UNCHANGED vars

TryLock(c) == Acquire(c) \/ Busy(c) \/ RefuseLock(c)

\* A sidecar that a crash has left, and that no longer describes its file, is removed.
List(c) ==
    /\ pc[c] = "list"
    /\ sidecar' = [f \in Files |-> IF sidecar[f] = "misfits" THEN "none" ELSE sidecar[f]]
    /\ LET listed == SelectSeq(Names, LAMBDA f : "incoming" \in where[f])
       IN /\ todo' = [todo EXCEPT ![c] = listed]
          /\ pc' = [pc EXCEPT ![c] = IF listed = <<>> THEN "release" ELSE "open"]
    /\ UNCHANGED <<where, content, rows, lockfile, holder, batch, stale>>

Open(c, f) ==
    /\ pc[c] = "open" /\ f = Head(todo[c])
    /\ todo' = [todo EXCEPT ![c] = Tail(@)]
    /\ batch' = [batch EXCEPT ![c] = Append(@, [file |-> f, content |-> content[f], explained |-> FALSE])]
    /\ pc' = [pc EXCEPT ![c] = "verify"]
    /\ UNCHANGED <<files, rows, lockfile, holder, stale>>

\* The last file of the batch was opened; its identity is compared and its content decoded.
Verify(c, f, outcome) ==
    LET last == batch[c][Len(batch[c])]
        kept == IF outcome = "unstable" THEN SubSeq(batch[c], 1, Len(batch[c]) - 1) ELSE batch[c]
    IN /\ pc[c] = "verify" /\ f = last.file
       /\ outcome = IF f \in stale[c] THEN "unstable" ELSE IF last.content \in Good THEN "good" ELSE "bad"
       /\ batch' = [batch EXCEPT ![c] = kept]
       /\ stale' = [stale EXCEPT ![c] = @ \cap FilesOf(kept)]
       /\ pc' = [pc EXCEPT ![c] = AfterRead(kept, todo[c])]
       /\ UNCHANGED <<files, rows, lockfile, holder, todo>>

\* One transaction; content that is stored already stays one row.
Commit(c) ==
    /\ pc[c] = "commit"
    /\ LET new == {batch[c][i].content : i \in GoodIn(batch[c])}
       IN rows' = [k \in DOMAIN rows |-> IF k \in new THEN 1 ELSE rows[k]]
    /\ pc' = [pc EXCEPT ![c] = Settle(batch[c], todo[c])]
    /\ UNCHANGED <<files, lockfile, holder, todo, batch, stale>>

WriteSidecar(c, f) ==
    LET next == First(Unexplained(batch[c]))
    IN /\ pc[c] = "sidecar" /\ f = batch[c][next].file
       /\ sidecar' = [sidecar EXCEPT ![f] = IF f \in stale[c] THEN "misfits" ELSE "fits"]
       /\ batch' = [batch EXCEPT ![c][next].explained = TRUE]
       /\ pc' = [pc EXCEPT ![c] = Settle(batch'[c], todo[c])]
       /\ UNCHANGED <<where, content, rows, lockfile, holder, todo, stale>>

\* Only the very file that was read moves. Whatever else rejected/ says about it is taken back.
Move(c, f, outcome) ==
    LET good == batch[c][1].content \in Good
        rest == Tail(batch[c])
    IN /\ pc[c] = "move" /\ f = batch[c][1].file
       /\ outcome = IF f \in stale[c] THEN "replaced" ELSE "moved"
       /\ where' = IF outcome = "replaced" THEN where
                   ELSE [where EXCEPT ![f] = IF good THEN {"accepted"} ELSE {"rejected"}]
       /\ sidecar' = IF outcome = "moved" /\ ~good THEN sidecar ELSE [sidecar EXCEPT ![f] = "none"]
       /\ batch' = [batch EXCEPT ![c] = rest]
       /\ stale' = [stale EXCEPT ![c] = @ \ {f}]
       /\ pc' = [pc EXCEPT ![c] = Settle(rest, todo[c])]
       /\ UNCHANGED <<content, rows, lockfile, holder, todo>>

Release(c) ==
    /\ pc[c] = "release"
    /\ holder' = Nobody
    /\ pc' = [pc EXCEPT ![c] = "idle"]
    /\ UNCHANGED <<files, rows, lockfile, todo, batch, stale>>

System(c) ==
    \/ TryLock(c) \/ List(c) \/ Commit(c) \/ Release(c)
    \/ \E f \in Files :
        \/ Open(c, f) \/ WriteSidecar(c, f)
        \/ \E o \in {"good", "bad", "unstable"} : Verify(c, f, o)
        \/ \E o \in {"moved", "replaced"} : Move(c, f, o)

-----------------------------------------------------------------------------
(* Environment: producers, and everything that fails.                      *)

Publish(f, k) ==
    /\ where[f] = {}
    /\ where' = [where EXCEPT ![f] = {"incoming"}]
    /\ content' = [content EXCEPT ![f] = k]
    /\ UNCHANGED <<sidecar, rows, lockfile, holder, pc, todo, batch, stale>>

\* The producer renames another file to the same name.
Replace(f, k) ==
    /\ "incoming" \in where[f]
    /\ content' = [content EXCEPT ![f] = k]
    /\ stale' = [c \in Consumers |-> IF f \in FilesOf(batch[c]) THEN stale[c] \cup {f} ELSE stale[c]]
    /\ sidecar' = [sidecar EXCEPT ![f] = IF @ = "fits" THEN "misfits" ELSE @]
    /\ UNCHANGED <<where, rows, lockfile, holder, pc, todo, batch>>

\* SIGKILL at any boundary; the kernel releases the lock, another process takes the place.
Crash(c) ==
    /\ pc[c] # "idle"
    /\ holder' = IF holder = c THEN Nobody ELSE holder
    /\ pc' = [pc EXCEPT ![c] = "idle"]
    /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile>>

\* An infrastructure error ends the pass; every file that was not moved stays.
FailStore(c) ==
    /\ pc[c] = "commit"
    /\ pc' = [pc EXCEPT ![c] = "release"]
    /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile, holder>>

FailMove(c) ==
    /\ pc[c] = "move"
    /\ pc' = [pc EXCEPT ![c] = "release"]
    /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile, holder>>

Fault(c) == Crash(c) \/ FailStore(c) \/ FailMove(c)

Environment ==
    \/ \E f \in Files, k \in Contents : Publish(f, k) \/ Replace(f, k)
    \/ \E c \in Consumers : Fault(c)

Next == (\E c \in Consumers : System(c)) \/ Environment

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* Fairness, per action. None is asked of the environment.                 *)

\* The service polls the spool for ever, so a free lock is tried again.
FairAcquire == \A c \in Consumers : WF_vars(Acquire(c))
\* The loops over batches and files have no step that waits for anybody.
FairList    == \A c \in Consumers : WF_vars(List(c))
FairOpen    == \A c \in Consumers : WF_vars(\E f \in Files : Open(c, f))
FairVerify  == \A c \in Consumers : WF_vars(\E f \in Files, o \in {"good", "bad", "unstable"} : Verify(c, f, o))
FairSidecar == \A c \in Consumers : WF_vars(\E f \in Files : WriteSidecar(c, f))
FairMove    == \A c \in Consumers : WF_vars(\E f \in Files, o \in {"moved", "replaced"} : Move(c, f, o))
\* A busy store is retried within its own deadline.
FairCommit  == \A c \in Consumers : WF_vars(Commit(c))
\* Release stands in a finally.
FairRelease == \A c \in Consumers : WF_vars(Release(c))

Fairness == /\ FairAcquire /\ FairList /\ FairOpen /\ FairVerify /\ FairSidecar /\ FairMove
            /\ FairCommit /\ FairRelease

-----------------------------------------------------------------------------
(* Safety.                                                                 *)

\* SPOOL-1: at most one consumer is inside a pass.
SingleConsumer == Cardinality({c \in Consumers : pc[c] # "idle"}) <= 1

\* SPOOL-2: every published file is in exactly one folder, no other file is in any.
NoLoss == \A f \in Files : Cardinality(where[f]) = (IF content[f] = Nothing THEN 0 ELSE 1)

\* SPOOL-3: what was accepted is stored.
AcceptedIsStored == \A f \in Files : "accepted" \in where[f] => rows[content[f]] > 0

\* SPOOL-4: content is stored once, however often it is published or replayed.
OneRowPerContent == \A k \in DOMAIN rows : rows[k] <= 1

\* SPOOL-5: neither bad content nor what an unstable read saw is ever stored.
OnlyGoodIsStored == \A k \in DOMAIN rows : rows[k] > 0 => k \in Good

\* SPOOL-6: a rejected file is bad and has a sidecar.
RejectedIsExplained == \A f \in Files : "rejected" \in where[f] => sidecar[f] = "fits" /\ content[f] \in Bad

\* SPOOL-7: a sidecar belongs to a rejected file, or to one on its way that a crash may have stopped.
SidecarHasItsFile == \A f \in Files : sidecar[f] # "none" => where[f] \in {{"rejected"}, {"incoming"}}

\* SPOOL-8: who is inside a pass holds the lock, and who is not, dead or done, has released it.
LockMeansInside == \A c \in Consumers : (holder = c) <=> (pc[c] # "idle")

\* SPOOL-10: what was accepted is good, and stays with its content where it is; so does what was rejected.
SettledIsFinal == [][\A f \in Files : where[f] \in {{"accepted"}, {"rejected"}}
                        => where'[f] = where[f] /\ content'[f] = content[f]]_vars

Safety == /\ TypeOK /\ SingleConsumer /\ NoLoss /\ AcceptedIsStored /\ OneRowPerContent /\ OnlyGoodIsStored
          /\ RejectedIsExplained /\ SidecarHasItsFile /\ LockMeansInside

-----------------------------------------------------------------------------
(* Liveness: once faults and replacements have ended.                      *)

\* SPOOL-11: a published file leaves incoming/.
Admitted == \A f \in Files : (where[f] = {"incoming"} /\ lockfile = "regular") ~> (where[f] # {"incoming"})
=============================================================================
