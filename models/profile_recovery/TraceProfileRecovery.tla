------------------------ MODULE TraceProfileRecovery ------------------------
(***************************************************************************)
(* Recorded runs, checked to be behaviours of ProfileRecovery.             *)
(*                                                                         *)
(* A trace holds sequences of lines, one per thread: the coordinator's     *)
(* owner and whoever asks what may be probed, of each process in turn. A   *)
(* line tells a step that was taken; `needs` says which lines of other     *)
(* sequences come before it. Digests of artifacts are only names: two      *)
(* lines name the same one exactly if they are about the same evidence.    *)
(*                                                                         *)
(* Not recorded, and found by the search: whether a write that failed took *)
(* place, and the last write of a process that was killed, which may have  *)
(* been taken and not recorded.                                            *)
(***************************************************************************)
EXTENDS ProfileRecovery, Integers, TLC

CONSTANTS
    Consumers,  \* the names of the sequences
    Traces      \* sequence of traces: name -> sequence of lines

VARIABLES
    t,      \* the trace
    at,     \* name -> how many of its lines are explained
    told,   \* how many that is in all
    lost,   \* the unrecorded write of the process that is up was taken
    known   \* the pairs of a digest and its evidence

traceVars == <<vars, t, at, told, lost, known>>

TraceInit == /\ Init
             /\ t \in 1..Len(Traces)
             /\ at = [c \in Consumers |-> 0]
             /\ told = 0
             /\ lost = FALSE
             /\ known = {}

\* TLC evaluates a constant that a cfg replaces at every use; a register keeps the value.
Kept == 0
ASSUME TLCSet(Kept, Traces)

Goes(c)  == at[c] < Len(TLCGet(Kept)[t][c])
Line(c)  == TLCGet(Kept)[t][c][at[c] + 1]
Ready(c) == Goes(c) /\ \A d \in DOMAIN Line(c).needs : at[d] >= Line(c).needs[d]

\* A line counts the records in memory.
Counts(l) == "records" \in DOMAIN l /\ l.records = Len(window)

\* A line is about this generation, if about any.
About(l, generation) ==
    /\ "artifact" \in DOMAIN l
    /\ (l.artifact = "") <=> (generation = {})
    /\ \A e \in generation, k \in known : (k[1] = l.artifact) <=> (k[2] = e)
    /\ known' = known \cup {<<l.artifact, e>> : e \in generation}

Written(l, step, file) ==
    \/ l.outcome = "written" /\ step
    \/ l.outcome = "failed" /\ \E landed \in BOOLEAN : FailWrite(file, landed)

Silent(l) ==
    /\ UNCHANGED known
    /\ \/ l.name = "Restart" /\ l.policy = policy /\ Restart
       \/ l.name = "LoadState" /\ LoadState(l.outcome)
       \/ l.name = "VerifyRuntime" /\ VerifyRuntime(l.outcome)
       \/ l.name = "Replay" /\ Counts(l) /\ Replay(l.outcome)
       \/ l.name = "Observe" /\ l.record \in Values /\ Observe(l.record)
       \/ l.name = "Build" /\ Counts(l) /\ Build(l.outcome)
       \/ l.name = "Serve" /\ Serve(l.outcome)
       \/ l.name = "Crash" /\ Crash
       \/ l.name = "Drift" /\ Drift(l.to)
       \/ l.name = "Truncate" /\ Truncate
       \/ l.name = "Corrupt" /\ Corrupt(l.file, {Garbage})
       \/ l.name = "Remove" /\ Corrupt("runtime", {})
       \/ l.name = "ChangePolicy" /\ l.policy \in Policies /\ ChangePolicy(l.policy)

Match(l) ==
    \/ Silent(l)
    \/ l.name = "WriteArtifact" /\ About(l, {Candidate}) /\ Written(l, WriteArtifact, "artifact")
    \/ l.name = "WriteRuntime" /\ About(l, {Candidate}) /\ Written(l, WriteRuntime, "runtime")
    \/ l.name = "Switch" /\ About(l, {Candidate}) /\ Switch
    \/ /\ l.name = "WriteState" /\ Counts(l)
       /\ About(l, IF build = "new" THEN {Candidate} ELSE current) /\ Written(l, WriteState, "state")

Explain(c) == /\ Match(Line(c))
              /\ at' = [at EXCEPT ![c] = @ + 1]
              /\ told' = told + 1
              /\ lost' = (lost /\ Line(c).name # "Crash")
              /\ UNCHANGED t

Hidden(l) == /\ l.name = "Crash" /\ ~lost /\ lost' = TRUE
             /\ WriteArtifact \/ WriteRuntime \/ WriteState
             /\ UNCHANGED <<t, at, told, known>>

TraceNext == \E c \in Consumers : Ready(c) /\ (Explain(c) \/ Hidden(Line(c)))

TraceSpec == TraceInit /\ [][TraceNext]_traceVars

-----------------------------------------------------------------------------
(* What is told: the trace, how many lines of it, and where the model has  *)
(* the coordinator.                                                        *)

Told == IF told > TLCGet(t)
        THEN TLCSet(t, told) /\ PrintT(ToString(<<"explained", t, told, at, [c \in Consumers |-> pc]>>))
        ELSE TRUE

ASSUME \A i \in 1..Len(Traces) : TLCSet(i, -1)
=============================================================================
