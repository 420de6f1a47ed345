------------------------ MODULE TraceSpoolAdmission -------------------------
(***************************************************************************)
(* Recorded runs, checked to be behaviours of SpoolAdmission.              *)
(*                                                                         *)
(* A trace holds one sequence of lines per process, which is a consumer    *)
(* here. A line tells a step that was taken, some time after the line      *)
(* before it; so lines of different processes are ordered only where one   *)
(* ended before the other can have begun, and `needs` says from where on.  *)
(*                                                                         *)
(* Not recorded, and found by the search: when producers published and     *)
(* replaced (as late as a line allows), and the last step of a process     *)
(* that was killed, which may have been taken and not recorded.            *)
(*                                                                         *)
(* Explained beyond SpoolAdmission, which leaves it out: a producer that   *)
(* takes its file back, before it is opened or after it was deferred; a    *)
(* file that changes while it is opened; and an infrastructure error in    *)
(* any step or between two. A name published again after it was settled    *)
(* comes as another name.                                                  *)
(*                                                                         *)
(* Many traces are checked in one run: every initial state takes one, and  *)
(* what was explained of each is printed.                                  *)
(***************************************************************************)
EXTENDS SpoolAdmission, Integers, TLC

CONSTANTS
    Traces,  \* sequence of traces: consumer -> sequence of lines
    Early    \* TRUE: what ends a batch or a pass is not known (bytes, queries in a file, the time budget), so a
             \* batch may be settled and a pass may end after every file, and the next begins behind that file

VARIABLES
    t,      \* the trace
    at,     \* consumer -> how many of its lines are explained
    told,   \* how many that is in all
    lost    \* the killed consumers whose unrecorded step was taken

traceVars == <<vars, t, at, told, lost>>

TraceInit == /\ Init /\ lockfile = "regular"
             /\ t \in 1..Len(Traces)
             /\ at = [c \in Consumers |-> 0]
             /\ told = 0
             /\ lost = {}

\* TLC evaluates a constant that a cfg replaces at every use; a register keeps the value.
Kept == 0
ASSUME TLCSet(Kept, Traces)

Line(c)  == TLCGet(Kept)[t][c][at[c] + 1]
Ready(c) == /\ at[c] < Len(TLCGet(Kept)[t][c])
            /\ \A d \in DOMAIN Line(c).needs : at[d] >= Line(c).needs[d]

\* A file is in incoming/ at the latest when it is first listed for somebody who opens it.
Published(l) == \A n \in l.news : where[n.file] # {}

\* A file that a pass goes past without opening it is not there any more when it is listed.
Listable(l) == \A f \in l.absent : "incoming" \notin where[f]

\* The producer, or an operator, took a file back.
TakenBack(f) == /\ where' = [where EXCEPT ![f] = {}]
                /\ content' = [content EXCEPT ![f] = Nothing]
                /\ sidecar' = [sidecar EXCEPT ![f] = "none"]

\* A file is not there any more, or not the same, when it is to be opened: the pass goes on without it.
OpenNothing(c, f, outcome) ==
    /\ pc[c] = "open" /\ f = Head(todo[c])
    /\ todo' = [todo EXCEPT ![c] = Tail(@)]
    /\ pc' = [pc EXCEPT ![c] = AfterRead(batch[c], Tail(todo[c]))]
    /\ IF outcome = "gone" THEN TakenBack(f) ELSE UNCHANGED files
    /\ UNCHANGED <<rows, lockfile, holder, batch, stale>>

MoveNothing(c, f) ==
    LET rest == Tail(batch[c])
    IN /\ pc[c] = "move" /\ f = batch[c][1].file
       /\ TakenBack(f)
       /\ batch' = [batch EXCEPT ![c] = rest]
       /\ stale' = [stale EXCEPT ![c] = @ \ {f}]
       /\ pc' = [pc EXCEPT ![c] = Settle(rest, todo[c])]
       /\ UNCHANGED <<rows, lockfile, holder, todo>>

\* An infrastructure error in a step for which SpoolAdmission has none. The pass ends; what is left stays.
StepOf == [List |-> "list", Open |-> "open", Verify |-> "verify", WriteSidecar |-> "sidecar"]
Fail(c, name) ==
    /\ name \in DOMAIN StepOf /\ pc[c] = StepOf[name]
    /\ pc' = [pc EXCEPT ![c] = "release"]
    /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile, holder>>

\* A folder cannot be opened or synced, or the process unwinds: the pass ends between two steps, and says so.
Abandon(c) ==
    /\ pc[c] # "idle"
    /\ holder' = Nobody
    /\ pc' = [pc EXCEPT ![c] = "idle"]
    /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile>>

Match(c, l) ==
    \/ l.name = "TryLock" /\ l.outcome = "Acquire" /\ Acquire(c)
    \/ l.name = "TryLock" /\ l.outcome = "Busy" /\ Busy(c)
    \* What lies at the lock's path may change between two attempts; nothing is done in this one.
    \/ l.name = "TryLock" /\ l.outcome \in {"RefuseLock", "failed"} /\ pc[c] = "idle" /\ UNCHANGED vars
    \/ l.name = "List" /\ l.outcome = "" /\ Listable(l) /\ Published(l) /\ List(c)
    \/ l.name = "Open" /\ l.outcome = "" /\ l.file \in Files /\ l.content \in {content[l.file], "any"} /\ Open(c, l.file)
    \/ l.name = "Open" /\ l.outcome \in {"gone", "unstable"} /\ l.file \in Files /\ OpenNothing(c, l.file, l.outcome)
    \/ l.name = "Verify" /\ Verify(c, l.file, l.outcome)
    \/ l.name = "Commit" /\ l.outcome = "" /\ Commit(c)
         /\ l.files = [i \in 1..Cardinality(GoodIn(batch[c])) |->
                        SelectSeq(batch[c], LAMBDA e : e.content \in Good)[i].file]
    \/ l.name = "Commit" /\ l.outcome = "failed" /\ FailStore(c)
    \/ l.name = "WriteSidecar" /\ l.outcome = "" /\ WriteSidecar(c, l.file)
    \/ l.name = "Move" /\ l.outcome \in {"moved", "replaced"} /\ Move(c, l.file, l.outcome)
    \/ l.name = "Move" /\ l.outcome = "gone" /\ MoveNothing(c, l.file)
    \/ l.name = "Move" /\ l.outcome = "failed" /\ FailMove(c)
    \/ l.outcome = "failed" /\ Fail(c, l.name)
    \/ l.name = "Release" /\ l.outcome = "" /\ Release(c)
    \/ l.name = "Release" /\ l.outcome = "failed" /\ Abandon(c)
    \/ l.name = "Crash" /\ Crash(c)
    \/ l.name \in {"Start", "Crash"} /\ pc[c] = "idle" /\ UNCHANGED vars

Explain(c) == /\ Match(c, Line(c))
              /\ at' = [at EXCEPT ![c] = @ + 1]
              /\ told' = told + 1
              /\ UNCHANGED <<t, lost>>

\* What nobody recorded.
Hidden(c, l) ==
    \/ /\ l.name = "List" /\ ~Listable(l) /\ UNCHANGED <<rows, lockfile, holder, pc, todo, batch, stale, lost>>
       /\ TakenBack(CHOOSE f \in l.absent : "incoming" \in where[f])
    \/ /\ l.name = "List" /\ Listable(l) /\ ~Published(l) /\ UNCHANGED lost
       \* In one order of the many that come to the same.
       /\ LET n == CHOOSE n \in l.news : where[n.file] = {} IN Publish(n.file, n.content)
    \/ l.name = "Open" /\ l.file \in Files /\ l.content \notin {content[l.file], "any"} /\ UNCHANGED lost /\ Replace(l.file, l.content)
    \/ /\ l.name \in {"Verify", "Move"} /\ l.outcome \in {"unstable", "replaced"}
       /\ l.file \in Files /\ l.file \notin stale[c]
       /\ UNCHANGED lost /\ Replace(l.file, content[l.file])
    \/ l.name = "Crash" /\ c \notin lost /\ lost' = lost \cup {c} /\ System(c)

\* What ends a batch, and a pass, ahead of the model's bounds.
Unbounded(c, l) ==
    /\ Early /\ pc[c] = "open"
    /\ \/ /\ l.name = "Open" /\ l.begins /\ l.file # Head(todo[c])
          \* It comes round to that file at its end.
          /\ todo' = [todo EXCEPT ![c] = Append(Tail(@), Head(@))]
          /\ UNCHANGED <<pc, batch, stale>>
       \/ /\ l.name \in {"Commit", "WriteSidecar", "Move"} /\ batch[c] # <<>>
          /\ pc' = [pc EXCEPT ![c] = IF GoodIn(batch[c]) # {} THEN "commit" ELSE Settle(batch[c], todo[c])]
          /\ UNCHANGED <<todo, batch, stale>>
       \/ /\ l.name = "Release" /\ batch[c] = <<>>
          /\ pc' = [pc EXCEPT ![c] = "release"]
          /\ Forget(c)
    /\ UNCHANGED <<files, rows, lockfile, holder, lost>>

\* The begin of a process does nothing, so nothing is lost when it is taken at once.
Beginning == {c \in Consumers : Ready(c) /\ Line(c).name = "Start"}

TraceNext ==
    IF Beginning # {} THEN Explain(CHOOSE c \in Beginning : TRUE)
    ELSE \E c \in Consumers :
            Ready(c) /\ (Explain(c) \/ ((Hidden(c, Line(c)) \/ Unbounded(c, Line(c))) /\ UNCHANGED <<t, at, told>>))

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

-----------------------------------------------------------------------------
(* What is told: the trace, how many lines of it, how many of each        *)
(* process, and which step of each the model would explain next.          *)

EnabledAt(c, step) ==
    CASE step = "idle"    -> <<"TryLock", IF holder = Nobody THEN "Acquire" ELSE "Busy">>
      [] step = "list"    -> <<"List", "">>
      [] step = "open"    -> <<"Open", Head(todo[c])>>
      [] step = "verify"  -> <<"Verify", batch[c][Len(batch[c])].file>>
      [] step = "commit"  -> <<"Commit", "">>
      [] step = "sidecar" -> <<"WriteSidecar", batch[c][First(Unexplained(batch[c]))].file>>
      [] step = "move"    -> <<"Move", batch[c][1].file>>
      [] step = "release" -> <<"Release", "">>

Enabled(c) ==
    {EnabledAt(c, pc[c])} \cup
    (IF ~Early \/ pc[c] # "open" THEN {}
     ELSE {EnabledAt(c, IF batch[c] = <<>> THEN "release"
                        ELSE IF GoodIn(batch[c]) # {} THEN "commit" ELSE Settle(batch[c], <<>>))})

Told == IF told > TLCGet(t)
        THEN TLCSet(t, told) /\ PrintT(ToString(<<"explained", t, told, at, [c \in Consumers |-> Enabled(c)]>>))
        ELSE TRUE

ASSUME \A i \in 1..Len(Traces) : TLCSet(i, -1)
=============================================================================
