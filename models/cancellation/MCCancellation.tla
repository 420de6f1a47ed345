--------------------------- MODULE MCCancellation ---------------------------
(* Bounds and test aids for Cancellation: a label on every step, and a     *)
(* switch for each part of the environment.                                *)
EXTENDS Cancellation, TLC

CONSTANT Faults   \* which of "CallOff", "Close", "Crash", "FailSpawn" and "error" may happen

VARIABLE act      \* the step that led here: its name and parameters

allVars == <<vars, act>>

\* The constants that a cfg cannot write itself.
OwnQuery   == [r \in Requests |-> CASE r = "r1" -> "a" [] r = "r2" -> "b" [] OTHER -> "a"]
SameQuery  == [r \in Requests |-> "a"]

MCInit == Init /\ act = [name |-> "Init"]

May(fault) == fault \in Faults
Label(n, w)         == act' = [name |-> n, by |-> w]
Went(n, w, o)       == act' = [name |-> n, by |-> w, outcome |-> o]
Handled(n, w, g)    == act' = [name |-> n, by |-> w, generation |-> g]

MCRequest(r) ==
    \/ Spawn(r)      /\ Label("Spawn", r)
    \/ Unregister(r) /\ Label("Unregister", r)
    \/ \E o \in {"registered", "refused"}        : Register(r, o)  /\ Went("Register", r, o)
    \/ \E o \in {"acquired", "left", "busy"}     : AcquireIO(r, o) /\ Went("AcquireIO", r, o)
    \/ \E o \in {"cancelled", "warm", "cold"}    : Admit(r, o)     /\ Went("Admit", r, o)
    \/ \E o \in {"cancelled", "sent"}            : Exchange(r, o)  /\ Went("Exchange", r, o)
    \/ \E o \in {"sat", "error", "failed"}       : Answer(r, o)    /\ Went("Answer", r, o)
    \/ \E o \in Reasons \cup {"answered"}        : Settle(r, o)    /\ Went("Settle", r, o)

MCKilling(w) ==
    \E g \in Generations : (Retire(w, g) /\ Handled("Retire", w, g)) \/ (Signal(w, g) /\ Handled("Signal", w, g))

MCCancelling ==
    \/ May("CallOff") /\ CallOff /\ act' = [name |-> "CallOff"]
    \/ May("Close")   /\ Close   /\ Label("Close", Closer)
    \/ \E c \in Cancellers, q \in Queries, o \in {"told", "nobody"} :
        CancelSolver(c, q, o) /\ act' = [name |-> "CancelSolver", by |-> c, query |-> q]

MCEnvironment ==
    \/ \E r \in Requests :
        \/ May("FailSpawn") /\ FailSpawn(r) /\ Label("FailSpawn", r)
        \/ Expire(r) /\ Label("Expire", r)
        \/ Reply(r, "answer") /\ act' = [name |-> "Reply", by |-> r, finding |-> "answer"]
        \/ May("error") /\ Reply(r, "error") /\ act' = [name |-> "Reply", by |-> r, finding |-> "error"]
    \/ \E g \in Generations : May("Crash") /\ Crash(g) /\ act' = [name |-> "Crash", generation |-> g]

MCNext == (\E r \in Requests : MCRequest(r)) \/ (\E w \in Hands : MCKilling(w)) \/ MCCancelling \/ MCEnvironment

\* For safety runs and for the graph.
MCSpec == MCInit /\ [][MCNext]_allVars

\* Behaviour does not depend on the label, so safety runs may forget it.
Unlabelled == vars

\* The labelled steps are steps of the pure module.
Refines == [][Next]_vars

\* For liveness runs: no labels, so the graph is the smallest that has the behaviours.
LiveNext ==
    /\ \/ \E r \in Requests : Request(r) \/ Expire(r) \/ Reply(r, "answer")
                             \/ (May("error") /\ Reply(r, "error")) \/ (May("FailSpawn") /\ FailSpawn(r))
       \/ \E w \in Hands : Killing(w)
       \/ May("CallOff") /\ CallOff
       \/ May("Close") /\ Close
       \/ \E c \in Cancellers, q \in Queries, o \in {"told", "nobody"} : CancelSolver(c, q, o)
       \/ \E g \in Generations : May("Crash") /\ Crash(g)
    /\ act' = act
LiveBase == MCInit /\ [][LiveNext]_allVars
LiveSpec == LiveBase /\ Fairness

\* Without one conjunct of the fairness each.
UnfairRegister   == LiveBase /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairAcquire    == LiveBase /\ FairRegister /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairAdmit      == LiveBase /\ FairRegister /\ FairAcquire /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairSpawn      == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairExchange   == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairAnswer     == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairSettle     == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairRetire /\ FairUnregister /\ FairSignal /\ FairTime
UnfairRetire     == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairUnregister /\ FairSignal /\ FairTime
UnfairUnregister == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairSignal /\ FairTime
UnfairSignal     == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairTime
UnfairTime       == LiveBase /\ FairRegister /\ FairAcquire /\ FairAdmit /\ FairSpawn /\ FairExchange /\ FairAnswer /\ FairSettle /\ FairRetire /\ FairUnregister /\ FairSignal

-----------------------------------------------------------------------------
(* Non-properties: tempting, and false.                                    *)

\* Between AcquireIO and Admit, and after it was found cancelled there, a holder is not active.
HolderIsActive == holder # Nobody => active = holder
\* An answer that is there already does not win over a cancellation that comes before Settle.
AnsweredIsNotCancelled == \A r \in Requests : heard[r] = "answer" => ended[r] = "none"
\* Most cancellations need no signal.
CancelledIsKilled == \A r \in Requests : ended[r] = "user" /\ pc[r] = "unregister" => heard[r] = "killed"
\* A cancellation that comes between Settle and Unregister returns True and changes nothing.
ToldIsCancelled == \A r \in running : reason[r] # "none" /\ pc[r] = "unregister" => ended[r] # "none"

(* Witnesses: each hazard that a property speaks of is reached.            *)
LeftTheQueue        == ~ (act.name = "AcquireIO" /\ act.outcome = "left")
CancelledAtAdmit    == ~ (act.name = "Admit" /\ act.outcome = "cancelled" /\ generation # None)
CancelledAtExchange == ~ (act.name = "Exchange" /\ act.outcome = "cancelled")
ServedWarm          == ~ (act.name = "Admit" /\ act.outcome = "warm")
FoundDead           == ~ (\E r \in Requests : pc[r] = "bury")
CancelledAnswer     == ~ (\E r \in Requests : heard[r] = "answer" /\ ended[r] = "user")
SignalledTooLate    == ~ (act.name = "Signal" /\ life[act.generation] = "retired")
BothTold            == ~ (Requests \subseteq due)
LateWhileQueued     == ~ (\E r \in Requests : ended[r] = "deadline" /\ used[r] = None)
CalledOffInTime     == ~ (\E r \in Requests : reason[r] = "lost-race")
CloseWaits          == ~ (closer = "wait")
RefusedAfterClose   == ~ (act.name = "Register" /\ act.outcome = "refused")
CancelledHelperless == ~ (\E r \in Requests : heard[r] = "no helper" /\ ended[r] = "user")
=============================================================================
