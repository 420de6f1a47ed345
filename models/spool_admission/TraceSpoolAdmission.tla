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
(* Many traces are checked in one run: every initial state takes one, and  *)
(* what was explained of each is printed.                                  *)
(***************************************************************************)
EXTENDS SpoolAdmission, Integers, TLC

CONSTANT Traces   \* sequence of traces: consumer -> sequence of lines

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

Match(c, l) ==
    \/ l.name = "TryLock" /\ l.outcome = "Acquire" /\ Acquire(c)
    \/ l.name = "TryLock" /\ l.outcome = "Busy" /\ Busy(c)
    \/ l.name = "List" /\ l.outcome = "" /\ Published(l) /\ List(c)
    \/ l.name = "Open" /\ l.outcome = "" /\ l.file \in Files /\ l.content \in {content[l.file], "any"} /\ Open(c, l.file)
    \/ l.name = "Verify" /\ Verify(c, l.file, l.outcome)
    \/ l.name = "Commit" /\ l.outcome = "" /\ Commit(c)
         /\ l.files = [i \in 1..Cardinality(GoodIn(batch[c])) |->
                        SelectSeq(batch[c], LAMBDA e : e.content \in Good)[i].file]
    \/ l.name = "Commit" /\ l.outcome = "failed" /\ FailStore(c)
    \/ l.name = "WriteSidecar" /\ l.outcome = "" /\ WriteSidecar(c, l.file)
    \/ l.name = "Move" /\ l.outcome \in {"moved", "replaced"} /\ Move(c, l.file, l.outcome)
    \/ l.name = "Move" /\ l.outcome = "failed" /\ FailMove(c)
    \/ l.name = "Release" /\ l.outcome = "" /\ Release(c)
    \/ l.name = "Crash" /\ Crash(c)
    \/ l.name \in {"Start", "Crash"} /\ pc[c] = "idle" /\ UNCHANGED vars

Explain(c) == /\ Match(c, Line(c))
              /\ at' = [at EXCEPT ![c] = @ + 1]
              /\ told' = told + 1
              /\ UNCHANGED <<t, lost>>

\* What nobody recorded.
Hidden(c, l) ==
    \/ l.name = "List" /\ UNCHANGED lost /\ \E n \in l.news : Publish(n.file, n.content)
    \/ l.name = "Open" /\ l.file \in Files /\ l.content \notin {content[l.file], "any"} /\ UNCHANGED lost /\ Replace(l.file, l.content)
    \/ /\ l.name \in {"Verify", "Move"} /\ l.outcome \in {"unstable", "replaced"}
       /\ l.file \in Files /\ l.file \notin stale[c]
       /\ UNCHANGED lost /\ Replace(l.file, content[l.file])
    \/ l.name = "Crash" /\ c \notin lost /\ lost' = lost \cup {c} /\ System(c)

\* The begin of a process does nothing, so nothing is lost when it is taken at once.
Beginning == {c \in Consumers : Ready(c) /\ Line(c).name = "Start"}

TraceNext ==
    IF Beginning # {} THEN Explain(CHOOSE c \in Beginning : TRUE)
    ELSE \E c \in Consumers :
            Ready(c) /\ (Explain(c) \/ (Hidden(c, Line(c)) /\ UNCHANGED <<t, at, told>>))

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

-----------------------------------------------------------------------------
(* What is told: the trace, how many lines of it, and where everybody is.  *)

Told == IF told > TLCGet(t) THEN TLCSet(t, told) /\ PrintT(ToString(<<"explained", t, told, at, pc>>)) ELSE TRUE

ASSUME \A i \in 1..Len(Traces) : TLCSet(i, -1)
=============================================================================
