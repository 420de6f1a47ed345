------------------------- MODULE LegacyCancellation -------------------------
(* The designs that Cancellation replaces, one flaw each (F381 sections 1  *)
(* to 3). Every specification here must violate a named property.          *)
EXTENDS MCCancellation

VARIABLE waits   \* the generation that a canceller waits for with the state lock held

legacyVars == <<allVars, waits>>

LegacyInit == MCInit /\ waits = None
Untouched  == act' = act /\ waits' = waits

\* Today's steps of a request, from Admit to Settle and its Retire.
Middle(r) ==
    \/ Spawn(r)
    \/ \E o \in {"cancelled", "warm", "cold"} : Admit(r, o)
    \/ \E o \in {"cancelled", "sent"} : Exchange(r, o)
    \/ \E o \in {"sat", "error", "failed"} : Answer(r, o)
    \/ \E g \in Generations : Retire(r, g)

Begin(r) ==
    \/ \E o \in {"registered", "refused"} : Register(r, o)
    \/ \E o \in {"acquired", "left", "busy"} : AcquireIO(r, o)
Decide(r) == \E o \in Reasons \cup {"answered"} : Settle(r, o)

Cancel  == \E c \in Cancellers, q \in Queries, o \in {"told", "nobody"} : CancelSolver(c, q, o)
Signals == \E c \in Cancellers, g \in Generations : Signal(c, g)
Engines == \E r \in Requests : Reply(r, "answer")

-----------------------------------------------------------------------------
(* The event is published once the turn is there (F381 section 1).         *)

EnterUnregistered(r) ==
    /\ pc[r] = "register"
    /\ Go(r, "acquire")
    /\ UNCHANGED <<reason, heard, ended, used, running, holder, active, generation, life, hand, closer, closed, over,
                   late, due>>
AcquireThenRegister(r) ==
    /\ pc[r] = "acquire" /\ holder = Nobody
    /\ holder' = r
    /\ running' = running \cup {r}
    /\ Go(r, "admit")
    /\ UNCHANGED <<reason, heard, ended, used, active, generation, life, hand, closer, closed, over, late, due>>
LateNext ==
    /\ \/ \E r \in Requests :
            EnterUnregistered(r) \/ AcquireThenRegister(r) \/ AcquireIO(r, "busy") \/ Middle(r) \/ Decide(r)
            \/ Unregister(r)
       \/ Cancel \/ Signals \/ Engines
    /\ Untouched
RegisterAfterIOSpec == LegacyInit /\ [][LateNext]_legacyVars

-----------------------------------------------------------------------------
(* The signal goes to whoever works on that query when it is sent.         *)

SignalById(c) ==
    LET g == IF active # Nobody THEN generation ELSE None
    IN /\ hand[c] # None
       /\ hand' = [hand EXCEPT ![c] = None]
       /\ life' = [other \in Generations |-> IF other = g THEN "broken" ELSE life[other]]
       /\ Interrupted(g, "killed")
       /\ UNCHANGED <<reason, ended, used, running, holder, active, generation, closer, closed, over, late, due>>
ByIdNext ==
    /\ \/ \E r \in Requests : Begin(r) \/ Middle(r) \/ Decide(r) \/ Unregister(r)
       \/ \E c \in Cancellers : SignalById(c)
       \/ Cancel \/ Engines
    /\ Untouched
SignalByIdSpec == LegacyInit /\ [][ByIdNext]_legacyVars

-----------------------------------------------------------------------------
(* Registration is removed on success only.                                *)

LeaveEvent(r) ==
    /\ pc[r] = "unregister" /\ (ended[r] # "none" \/ heard[r] # "answer")
    /\ Go(r, "done")
    /\ UNCHANGED <<reason, heard, ended, used, running, holder, active, generation, life, hand, closer, closed, over,
                   late, due>>
OnSuccessNext ==
    /\ \/ \E r \in Requests : Begin(r) \/ Middle(r) \/ Decide(r) \/ LeaveEvent(r)
                              \/ (ended[r] = "none" /\ heard[r] = "answer" /\ Unregister(r))
       \/ Cancel \/ Signals \/ Engines
    /\ Untouched
UnregisterOnSuccessSpec == LegacyInit /\ [][OnSuccessNext]_legacyVars

-----------------------------------------------------------------------------
(* A generation that has answered stays, cancelled or not.                 *)

SettleAndKeep(r) ==
    /\ pc[r] = "settle" /\ heard[r] = "answer"
    /\ ended' = [ended EXCEPT ![r] = reason[r]]
    /\ active' = IF active = r THEN Nobody ELSE active
    /\ holder' = Nobody
    /\ pc' = Woken([pc EXCEPT ![r] = "unregister"], Nobody, reason, late)
    /\ UNCHANGED <<reason, heard, used, running, generation, life, hand, closer, closed, over, late, due>>
KeepNext ==
    /\ \/ \E r \in Requests : Begin(r) \/ Middle(r) \/ SettleAndKeep(r) \/ Unregister(r)
                              \/ (heard[r] # "answer" /\ Decide(r))
       \/ Cancel \/ Signals \/ Engines
    /\ Untouched
KeepCancelledSpec == LegacyInit /\ [][KeepNext]_legacyVars

-----------------------------------------------------------------------------
(* The state lock is held until the process is gone. All steps but Retire  *)
(* and Signal need it.                                                     *)

CancelAndHold ==
    /\ waits = None
    /\ Cancel
    /\ waits' = IF \E c \in Cancellers : hand'[c] # None THEN generation ELSE None
    /\ act' = act
Gone == /\ waits # None /\ life[waits] = "retired"
        /\ waits' = None
        /\ UNCHANGED allVars
Locked(r) == /\ waits = None \/ pc[r] \in {"bury", "retire"}
             /\ Begin(r) \/ Middle(r) \/ Decide(r) \/ Unregister(r)
             /\ Untouched
Unlocked == (Signals \/ Engines) /\ Untouched
HoldNext == (\E r \in Requests : Locked(r)) \/ CancelAndHold \/ Gone \/ Unlocked
HoldLockSpec ==
    /\ LegacyInit /\ [][HoldNext]_legacyVars
    /\ \A r \in Requests : WF_legacyVars(Locked(r))
    /\ WF_legacyVars(Signals /\ Untouched) /\ WF_legacyVars(Gone)
=============================================================================
