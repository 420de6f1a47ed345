------------------------- MODULE TraceCancellation --------------------------
(***************************************************************************)
(* Recorded runs, checked to be behaviours of Cancellation.                *)
(*                                                                         *)
(* A trace holds sequences of lines. A line tells a step that was taken,   *)
(* by which request, canceller or closer; `needs` says which lines of      *)
(* other sequences come before it. What a line has no word for it leaves   *)
(* out.                                                                    *)
(*                                                                         *)
(* A trace may begin where nothing is registered: `Found` then says that   *)
(* an earlier request has left its generation. Whose race was over before  *)
(* it registered is in `Racing`.                                           *)
(*                                                                         *)
(* Not recorded, and found by the search: what engines and time did. A     *)
(* reply is there as early as it can be; a helper dies and a deadline      *)
(* passes as late as a line allows, and only where a line needs it.        *)
(***************************************************************************)
EXTENDS Cancellation, Sequences, Integers, TLC

CONSTANTS
    Consumers,  \* the names of the sequences
    Traces      \* sequence of traces: name -> sequence of lines

VARIABLES
    t,      \* the trace
    at,     \* name -> how many of its lines are explained
    told    \* how many that is in all

traceVars == <<vars, t, at, told>>

TraceInit == /\ Init
             /\ t \in 1..Len(Traces)
             /\ at = [c \in Consumers |-> 0]
             /\ told = 0

\* TLC evaluates a constant that a cfg replaces at every use; a register keeps the value.
Kept == 0
ASSUME TLCSet(Kept, Traces)

Goes(c)  == at[c] < Len(TLCGet(Kept)[t][c])
Line(c)  == TLCGet(Kept)[t][c][at[c] + 1]
Ready(c) == Goes(c) /\ \A d \in DOMAIN Line(c).needs : at[d] >= Line(c).needs[d]

\* A thread makes its next request when the one before is over.
Free(l)  == "after" \in DOMAIN l => l.after \in Requests /\ pc[l.after] = "done"
Fails(l) == "outcome" \in DOMAIN l /\ l.outcome = "failed"

\* The generation that the trace begins with.
Found(g) ==
    /\ g = Newest /\ told = 0
    /\ generation' = g
    /\ life' = [life EXCEPT ![g] = "valid"]
    /\ UNCHANGED <<pc, reason, heard, ended, used, running, holder, active, hand, closer, closed, over, late, due>>

Match(l) ==
    \/ l.name = "Found"        /\ Found(l.generation)
    \/ l.name = "Register"     /\ Free(l) /\ (l.by \in Racing => over) /\ Register(l.by, l.outcome)
    \/ l.name = "AcquireIO"    /\ AcquireIO(l.by, l.outcome)
    \/ l.name = "Admit"        /\ Admit(l.by, l.outcome)
    \/ l.name = "Spawn"        /\ "outcome" \notin DOMAIN l /\ l.generation = Newest /\ Spawn(l.by)
    \/ l.name = "Spawn"        /\ Fails(l) /\ FailSpawn(l.by)
    \/ l.name = "Exchange"     /\ Exchange(l.by, l.outcome)
    \/ l.name = "Answer"       /\ Answer(l.by, l.outcome)
    \/ l.name = "Settle"       /\ Settle(l.by, l.outcome)
    \/ l.name = "Retire"       /\ l.by \in Hands /\ Retire(l.by, l.generation)
    \/ l.name = "Unregister"   /\ Unregister(l.by)
    \/ l.name = "CancelSolver" /\ CancelSolver(l.by, l.query, l.outcome)
    \/ l.name = "Signal"       /\ l.by \in Hands /\ Signal(l.by, l.generation)
    \/ l.name = "Close"        /\ Close

Explain(c) == /\ Match(Line(c))
              /\ at' = [at EXCEPT ![c] = @ + 1]
              /\ told' = told + 1
              /\ UNCHANGED t

\* A reply that a line will tell of is there once it was asked for; nothing is lost when it is taken at once.
Replied(r, outcome) ==
    \E c \in Consumers : \E i \in (at[c] + 1)..Len(TLCGet(Kept)[t][c]) :
        LET l == TLCGet(Kept)[t][c][i] IN l.name = "Answer" /\ l.by = r /\ l.outcome = outcome
Answering == {r \in Requests : pc[r] = "asked" /\ (Replied(r, "sat") \/ Replied(r, "error"))}

Hidden(l) ==
    \/ l.name = "Register" /\ l.by \in Racing /\ CallOff
    \/ l.name = "Answer" /\ l.outcome = "failed" /\ pc[l.by] = "asked" /\ (Crash(used[l.by]) \/ Expire(l.by))
    \/ l.name = "Admit" /\ l.outcome = "cold" /\ generation # None /\ Crash(generation)
    \/ /\ \/ l.name \in {"AcquireIO", "Admit", "Exchange"} /\ l.outcome \in {"left", "cancelled"}
          \/ l.name = "Spawn" /\ Fails(l)
       /\ reason[l.by] = "none" /\ Expire(l.by)

TraceNext ==
    IF Answering # {}
    THEN LET r == CHOOSE r \in Answering : TRUE
         IN Reply(r, IF Replied(r, "sat") THEN "answer" ELSE "error") /\ UNCHANGED <<t, at, told>>
    ELSE \E c \in Consumers : Ready(c) /\ (Explain(c) \/ (Hidden(Line(c)) /\ UNCHANGED <<t, at, told>>))

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

-----------------------------------------------------------------------------
(* What is told: the trace, how many lines of it, and where the model has  *)
(* whoever takes the next step.                                            *)

Due(c) == IF Goes(c) /\ Line(c).by \in Requests THEN pc[Line(c).by] ELSE "anything"

Told == IF told > TLCGet(t)
        THEN TLCSet(t, told) /\ PrintT(ToString(<<"explained", t, told, at, [c \in Consumers |-> Due(c)]>>))
        ELSE TRUE

ASSUME \A i \in 1..Len(Traces) : TLCSet(i, -1)
=============================================================================
