----------------------- MODULE LegacyProfileRecovery ------------------------
(* The designs that ProfileRecovery replaces, one flaw each (F305 section  *)
(* 2, and what was found on the way). Every specification here must        *)
(* violate a named property.                                               *)
EXTENDS MCProfileRecovery

\* Every step but those that are replaced.
Except(names) == MCNext /\ act'.name \notin names

-----------------------------------------------------------------------------
(* A label that agrees is believed: nothing is replayed (section 2.1).     *)

Trust(outcome) ==
    /\ pc = "verify"
    /\ outcome = IF runtime = {} THEN "absent" ELSE IF Verified # {} THEN "verified" ELSE "refused"
    /\ current' = Verified
    /\ renewal' = (outcome = "refused" \/ \E e \in Verified : e.policy # policy)
    /\ dirty' = (dirty \/ Named # Verified \/ renewal' \/ (window # <<>> /\ Verified = {}))
    /\ served' = IF dirty' THEN {} ELSE Verified
    /\ basis' = IF dirty' THEN {} ELSE {window}
    /\ pc' = "idle"
    /\ UNCHANGED <<files, policy, window, build, counters>>

TrustSpec == MCInit /\ [][Except({"VerifyRuntime"}) \/ (\E o \in {"absent", "verified", "refused"} :
                              Trust(o) /\ Free /\ Went("VerifyRuntime", o))]_allVars

-----------------------------------------------------------------------------
(* Dirty is cleared before the checkpoint, whose failure nobody looks at   *)
(* (section 2.2).                                                          *)

Clear(outcome) ==
    /\ pc = "idle" /\ dirty
    /\ outcome = IF renewal THEN "new"
                 ELSE IF current = {} /\ Domain(Candidate) = {} THEN "nothing"
                 ELSE IF SameDomains(current) THEN "same" ELSE "new"
    /\ dirty' = FALSE
    /\ build' = outcome
    /\ served' = IF outcome = "same" THEN current ELSE {}
    /\ basis' = {window}
    /\ pc' = IF outcome = "new" THEN "artifact" ELSE "state"
    /\ UNCHANGED <<files, policy, window, current, renewal, counters>>

IgnoreFailure ==
    /\ pc = "state"
    /\ build' = IF build = "new" THEN "new" ELSE "none"
    /\ pc' = IF build = "new" THEN "switch" ELSE "idle"
    /\ UNCHANGED <<files, policy, window, dirty, current, served, renewal, basis, counters>>

ClearSpec == MCInit /\ [][\/ Except({"Build", "FailWrite"})
                          \/ \E o \in {"nothing", "same", "new"} : Clear(o) /\ Free /\ Went("Build", o)
                          \/ IgnoreFailure /\ Costly /\ Label("IgnoreFailure")]_allVars

-----------------------------------------------------------------------------
(* What verifies is served at once, whatever else recovery finds.          *)

ServeVerified(outcome) ==
    /\ pc = "verify"
    /\ outcome = IF runtime = {} THEN "absent" ELSE IF Verified # {} THEN "verified" ELSE "refused"
    /\ current' = Verified /\ served' = Verified
    /\ renewal' = (outcome = "refused" \/ \E e \in Verified : e.policy # policy)
    /\ dirty' = (dirty \/ Named # Verified \/ renewal' \/ (window # <<>> /\ Verified = {}))
    /\ pc' = IF state # {} /\ Verified # {} THEN "replay" ELSE "idle"
    /\ UNCHANGED <<files, policy, window, build, basis, counters>>

ServeDirtySpec == MCInit /\ [][Except({"VerifyRuntime"}) \/ (\E o \in {"absent", "verified", "refused"} :
                                   ServeVerified(o) /\ Free /\ Went("VerifyRuntime", o))]_allVars

-----------------------------------------------------------------------------
(* Another policy that comes to the same domains is a no-op.               *)

NoOp ==
    /\ pc = "idle" /\ dirty /\ renewal /\ current # {} /\ SameDomains(current)
    /\ build' = "same" /\ served' = current /\ basis' = {window}
    /\ pc' = "state"
    /\ UNCHANGED <<files, policy, window, dirty, current, renewal, counters>>

PolicyNoOpSpec == MCInit /\ [][(MCNext /\ (act'.name = "Build" => ~ (renewal /\ current # {} /\ SameDomains(current))))
                               \/ (NoOp /\ Free /\ Went("Build", "same"))]_allVars

-----------------------------------------------------------------------------
(* A runtime file whose write failed is taken for the one before.          *)

ForgottenFailure(landed) ==
    /\ pc = "runtime"
    /\ runtime' = IF landed THEN {Candidate} ELSE runtime
    /\ artifacts' = artifacts \cap runtime'
    /\ counters' = Bumped({"publication_failures"})
    /\ build' = "lost" /\ pc' = "state"
    /\ UNCHANGED <<state, policy, window, dirty, current, served, renewal, basis>>

ForgetSpec == MCInit /\ [][Except({"FailWrite"})
                           \/ (\E landed \in Landings : ForgottenFailure(landed) /\ Costly /\ Label("FailWrite"))]_allVars

-----------------------------------------------------------------------------
(* The runtime file is written before its artifact.                        *)

RuntimeFirst ==
    /\ pc = "artifact"
    /\ runtime' = {Candidate}
    /\ artifacts' = artifacts \cap runtime'
    /\ pc' = "runtime"
    /\ UNCHANGED <<state, policy, memory>>

ArtifactLast ==
    /\ pc = "runtime"
    /\ artifacts' = {Candidate}
    /\ pc' = "state"
    /\ UNCHANGED <<state, runtime, policy, memory>>

RuntimeFirstSpec == MCInit /\ [][\/ Except({"WriteArtifact", "WriteRuntime"})
                                 \/ RuntimeFirst /\ Free /\ Label("WriteRuntime")
                                 \/ ArtifactLast /\ Free /\ Label("WriteArtifact")]_allVars

-----------------------------------------------------------------------------
(* A probe that finds nothing under a domain is taken for the answer.      *)

ProbeIsFinal ==
    \A solutions \in SUBSET Values :
        served # {} /\ Domains(served) # {} =>
            Probe(solutions, Domains(served)) = IF solutions = {} THEN "unsat" ELSE "sat"
=============================================================================
