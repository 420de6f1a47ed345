------------------------ MODULE TraceQualification ------------------------
(***************************************************************************)
(* Recorded runs, checked to be behaviours of Qualification.               *)
(*                                                                         *)
(* A trace holds one sequence of lines for each rank, or one for all of    *)
(* them where their order is known. A line tells a step that was taken;    *)
(* `needs` says which lines of other sequences come before it. A step that *)
(* was struck is told with `raised`, and is then no step but an exception  *)
(* in its place; what the rank held it may hold for a while yet. Only an   *)
(* Observe that was struck may have asked the peers by then.               *)
(*                                                                         *)
(* Not recorded, and found by the search, where a line needs it: that the  *)
(* loop came round, that a deadline passed, that an exception came in a    *)
(* wait or after an Exchange, and that a file was refused.                 *)
(***************************************************************************)
EXTENDS Qualification, Integers, TLC

CONSTANTS
    Consumers,  \* the names of the sequences
    Traces      \* sequence of traces: name -> sequence of lines

VARIABLES
    t,      \* the trace
    at,     \* name -> how many of its lines are explained
    told    \* how many that is in all

traceVars == <<vars, t, at, told>>

\* TLC evaluates a constant that a cfg replaces at every use; a register keeps the value.
Kept == 0
ASSUME TLCSet(Kept, Traces)

Goes(c)  == at[c] < Len(TLCGet(Kept)[t][c])
Said(c)  == TLCGet(Kept)[t][c][at[c] + 1]
Ready(c) == Goes(c) /\ \A d \in DOMAIN Said(c).needs : at[d] >= Said(c).needs[d]

TraceInit == /\ Init
             /\ given = [r \in Ranks |-> "int"]
             /\ t \in 1..Len(Traces)
             /\ at = [c \in Consumers |-> 0]
             /\ told = 0

\* The place where the model has a rank is the one that a line tells.
There(l) == /\ l.by \in Ranks
            /\ "round" \in DOMAIN l => stage[l.by] # 0 /\ Line[stage[l.by]].round = l.round
            /\ "phase" \in DOMAIN l => stage[l.by] # 0 /\ Phase(stage[l.by]) = l.phase

Stands(l) == CASE l.name = "Enter"            -> pc[l.by] = "enter"
               [] l.name = "Exchange"         -> pc[l.by] = "exchange"
               [] l.name = "CommitTranscript" -> pc[l.by] = "commit"
               [] l.name = "Observe"          -> pc[l.by] = "observe"
               [] l.name = "Consume"          -> pc[l.by] = "consume"
               [] l.name = "Contain"          -> pc[l.by] \in {"contain", "fall"}
               [] l.name = "Shutdown"         -> pc[l.by] = "shutdown"
               [] l.name = "Abort"            -> pc[l.by] = "abort"
               [] OTHER                       -> pc[l.by] = "act"

Match(l) ==
    /\ There(l)
    /\ IF "raised" \in DOMAIN l
       THEN /\ Stands(l)
            /\ \/ UNCHANGED vars
               \/ l.name = "Observe" /\ \E o \in {"Observed", "Failed"} : Observe(l.by, o)
               \/ CASE l.raised = "control"  -> RaiseControl(l.by)
                    [] l.raised = "ordinary" -> \E n \in 0..Cardinality(Peers) : RaiseOrdinary(l.by, n)
                    [] OTHER                 -> FailFile(l.by)
       ELSE \/ l.name = "Observe"          /\ Observe(l.by, l.outcome)
            \/ l.name = "Enter"            /\ (Enter(l.by) \/ (pc[l.by] = "enter" /\ FailFile(l.by)))
            \/ l.name = "Exchange"         /\ Exchange(l.by, l.outcome)
            \/ l.name = "Hold"             /\ Hold(l.by, l.outcome)
            \/ l.name = "Contend"          /\ Contend(l.by, l.outcome)
            \/ l.name = "Release"          /\ Release(l.by)
            \/ l.name = "Reacquire"        /\ Reacquire(l.by, l.outcome)
            \/ l.name = "CloseIdentity"    /\ CloseIdentity(l.by, l.outcome)
            \/ l.name = "CommitTranscript" /\ CommitTranscript(l.by)
            \/ l.name = "Contain"          /\ Contain(l.by)
            \/ l.name = "Consume"          /\ Consume(l.by, l.at, l.outcome)
            \/ l.name = "Shutdown"         /\ Shutdown(l.by)
            \/ l.name = "Abort"            /\ Abort(l.by, l.code)

Explain(c) == /\ Match(Said(c))
              /\ at' = [at EXCEPT ![c] = @ + 1]
              /\ told' = told + 1
              /\ UNCHANGED t

\* What r does next, as far as the trace tells: a line, or none.
Still(r, c)  == {i \in (at[c] + 1)..Len(TLCGet(Kept)[t][c]) : TLCGet(Kept)[t][c][i].by = r}
After(r)     == UNION {{TLCGet(Kept)[t][c][i] : i \in {j \in Still(r, c) : \A k \in Still(r, c) : j <= k}} : c \in Consumers}
Stops(r)     == After(r) = {}
Contained(r) == \E l \in After(r) : l.name = "Contain"
Falls(r)     == \/ Contained(r) /\ \E n \in 0..Cardinality(Peers) : RaiseOrdinary(r, n)
                \/ Stops(r) /\ pc[r] \in Inside /\ RaiseControl(r)

Hidden(l) ==
    \/ /\ l.name = "Exchange" /\ ("outcome" \in DOMAIN l => l.outcome = "Expired")
       /\ pc[l.by] = "wait" /\ Expire(l.by)
    \/ l.name = "Contain" /\ pc[l.by] \notin {"contain", "fall"} /\ Falls(l.by)
    \/ l.name \in {"Observe", "Shutdown"} /\ pc[l.by] = "work" /\ Turn(l.by)
    \/ l.name = "Abort" /\ pc[l.by] = "leaving" /\ Expire(l.by)
    \/ l.name \in {"Contend", "Hold", "Reacquire", "CloseIdentity"} /\ \E r \in Ranks \ {l.by} : Falls(r)

TraceNext == \E c \in Consumers : Ready(c) /\ (Explain(c) \/ (Hidden(Said(c)) /\ UNCHANGED <<t, at, told>>))
TraceSpec == TraceInit /\ [][TraceNext]_traceVars

-----------------------------------------------------------------------------
(* What is told: the trace, how many lines of it, and where the model has  *)
(* whoever takes the next step.                                            *)

Due(c) == IF Goes(c) /\ Said(c).by \in Ranks THEN pc[Said(c).by] ELSE "anything"

Told == IF told > TLCGet(t)
        THEN TLCSet(t, told) /\ PrintT(ToString(<<"explained", t, told, at, [c \in Consumers |-> Due(c)]>>))
        ELSE TRUE

ASSUME \A i \in 1..Len(Traces) : TLCSet(i, -1)
=============================================================================
