----------------------------- MODULE LegacyRace -----------------------------
(* The designs that Race replaces, one flaw each: a cfg puts a definition  *)
(* from here in the place of one of Race. Each must violate a named        *)
(* property.                                                               *)
EXTENDS MCRace

\* The first sat wins, whatever its model is worth: an early lie beats a slower truth.
AnySat(s) == end[s] \in {"sat", "unsat"}

\* Whoever says unsat is believed, although another engine has a model.
FirstVerdict ==
    CASE \E s \in Sats : Accepted(s) -> "sat"
      [] Unsats # {} -> "unsat"
      [] OTHER -> "unknown"

\* Futures are cancelled, solvers are not (before F381): whoever has begun goes on.
NobodyElse(s) == {}

\* Whoever registers does not look at the switch: it began, and the solver did not know it yet (F381 section 1).
Unseen == FALSE

\* Each engine's attempt has the same id.
SameId == 1

\* Of a loser that was not heard it is recorded that it was cancelled, whatever it had settled on.
RecordedAsTold(s) ==
    CASE future[s] = "none" -> "none"
      [] s \in known -> IF Troubled(s) \/ end[s] = "failed" THEN "error" ELSE end[s]
      [] OTHER -> why

\* The losers are told and not awaited, although nobody is short of patience.
LeaveAtOnce ==
    /\ race = "settle"
    /\ race' = "leave" /\ inbox' = <<>>
    /\ UNCHANGED <<why, over, ripe, patience, known, told, callVars, poolVars, late, token, closeVars, endVars, act>>
NotAwaitedSpec == MCInit /\ [][MCNext \/ LeaveAtOnce]_allVars

\* Whoever is still queued stays so: the pool will get to it.
LeaveQueued(s) ==
    /\ race = "future" /\ s = First(told) /\ future[s] = "queued"
    /\ told' = told \ {s}
    /\ race' = IF told' = {} THEN "settle" ELSE "future"
    /\ UNCHANGED <<why, over, ripe, patience, inbox, known, callVars, poolVars, late, token, closeVars, endVars, act>>
Leaving == \/ MCNext /\ (act'.name = "CancelFuture" => act'.outcome = "running")
           \/ \E s \in Solvers : LeaveQueued(s)
LeftQueuedSpec == MCInit /\ [][Leaving]_allVars
=============================================================================
