------------------------ MODULE LegacyQualification ------------------------
(* The designs that Qualification replaces, one flaw each (F355 sections 1 *)
(* and 4, F352 to F354). Every specification here must violate a named     *)
(* property.                                                               *)
EXTENDS MCQualification

\* Today's steps, but for those that a flaw replaces.
Usual(r) ==
    \/ \E o \in {"Observed", "Failed"} : Observe(r, o)
    \/ Enter(r) \/ Release(r) \/ CommitTranscript(r)
    \/ \E o \in Locking : Hold(r, o) \/ Contend(r, o) \/ Reacquire(r, o)
    \/ \E o \in {"Same", "Changed"} : CloseIdentity(r, o)
Exchanges(r) == \E o \in Outcomes : Exchange(r, o)
Strikes(r)   == RaiseOrdinary(r, 0)
Ends(r)      == Shutdown(r) \/ (\E c \in Codes : Abort(r, c)) \/ Turns(r) \/ Expire(r)
Consumes(r, at, outcomes) == \E o \in outcomes : Consume(r, at, o)
Started(r)   == Consumes(r, "startup", {"EveryMaster", "OneOwner", "Refused"})
Renewed(r)   == Consumes(r, "renewal", {"Success", "Failure"})

-----------------------------------------------------------------------------
(* The boundary lists the exceptions it knows (F355 section 1).            *)

Escape(r) == /\ pc[r] \in Inside
             /\ Struck(r, "ordinary", "unwound", reply)
             /\ Moves(r, 0)
             /\ UNCHANGED admits
NarrowSteps(r) == Usual(r) \/ Exchanges(r) \/ Started(r) \/ Ends(r) \/ Escape(r)
NarrowExceptSpec == MCInit /\ [][(\E r \in Present : NarrowSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* The boundary catches everything.                                        *)

Swallow(r) == /\ pc[r] \in Inside /\ stage[r] # Configuration
              /\ Struck(r, "control", "contain", reply)
              /\ Moves(r, 0)
              /\ UNCHANGED admits
SwallowSteps(r) == Usual(r) \/ Exchanges(r) \/ Started(r) \/ Ends(r) \/ Swallow(r) \/ Contain(r)
SwallowControlSpec == MCInit /\ [][(\E r \in Present : SwallowSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* A contained result keeps the rounds that had ended (F355 section 4.5).  *)

StrikeInPlace(r) == /\ pc[r] \in Inside /\ stage[r] # Configuration
                    /\ Struck(r, "ordinary", "contain", reply)
                    /\ UNCHANGED <<stage, admits>>
ContainInPart(r) == /\ pc[r] = "contain"
                    /\ Go(r, "consume") /\ Value(r, "contained", Finished(stage[r])) /\ Moves(r, 0)
                    /\ UNCHANGED <<heard, sound, mail, files, world, sworn, book, fate, met>>
PartialSteps(r) == Usual(r) \/ Exchanges(r) \/ StrikeInPlace(r) \/ ContainInPart(r)
PartialProofSpec == MCInit /\ [][(\E r \in Present : PartialSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* True is an instance of int (F355 section 4.2).                          *)

ContainBool(r) == /\ pc[r] = "contain"
                  /\ Go(r, "consume") /\ Moves(r, 0)
                  /\ result' = [result EXCEPT ![r] = "contained"] /\ proof' = [proof EXCEPT ![r] = 0]
                  /\ stamp' = [stamp EXCEPT ![r] = IF given[r] = "bool" THEN 1 ELSE StartAt]
                  /\ UNCHANGED <<heard, sound, mail, files, world, sworn, book, fate, met>>
BoolSteps(r) == Usual(r) \/ Exchanges(r) \/ Strikes(r) \/ ContainBool(r)
BoolGenerationSpec == MCInit /\ [][(\E r \in Present : BoolSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* A failed renewal is rolled back and not counted (F355 section 2).       *)

RollBack(r) == /\ pc[r] = "consume" /\ Renews(r) /\ result[r] \in Failed
               /\ Doom(r, "proof")
               /\ Go(r, "shutdown")
               /\ UNCHANGED <<stage, heard, sound, mail, files, world, value, book, code, met>>
RollBackSteps(r) == Usual(r) \/ Exchanges(r) \/ Strikes(r) \/ Contain(r) \/ Ends(r) \/ RollBack(r)
RollBackSpec == MCInit /\ [][(\E r \in Present : RollBackSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* An exception of the consumer counts as a failed renewal (F354).         *)

CountConsumer(r) == /\ pc[r] = "consume" /\ Renews(r)
                    /\ attempts' = [attempts EXCEPT ![r] = @ + 1] /\ failures' = [failures EXCEPT ![r] = @ + 1]
                    /\ generation' = [generation EXCEPT ![r] = flight[r]] /\ flight' = [flight EXCEPT ![r] = 0]
                    /\ UNCHANGED successes
                    /\ Doom(r, "accounting")
                    /\ Go(r, "shutdown")
                    /\ UNCHANGED <<stage, heard, sound, mail, files, world, value, code, met>>
CountSteps(r) == Usual(r) \/ Exchanges(r) \/ Ends(r) \/ Renewed(r) \/ CountConsumer(r)
ConsumerCountedSpec == MCInit /\ [][(\E r \in Present : CountSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* A rank is verified when it has seen equal transcripts (F352).           *)

VerifyAlone(r) == /\ pc[r] = "exchange" /\ stage[r] # 0 /\ Phase(stage[r]) = "transcript" /\ heard[r] = "Agreed"
                  /\ Value(r, "verified", Rounds)
                  /\ Passes(r, "consume", "good") /\ Moves(r, 0)
                  /\ UNCHANGED <<sound, asked, stops, files, world, sworn, book, fate, met>>
Before(r)     == stage[r] # 0 /\ Phase(stage[r]) # "transcript" /\ Exchanges(r)
AloneSteps(r) == Usual(r) \/ Before(r) \/ VerifyAlone(r)
NoCommitSpec == MCInit /\ [][(\E r \in Present : AloneSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* The round's descriptor is closed by hand (background of F355).          *)

Leak(r) == /\ pc[r] \in Inside /\ stage[r] # Configuration
           /\ met' = [met EXCEPT ![r] = "ordinary"] /\ sound' = [sound EXCEPT ![r] = TRUE]
           /\ UNCHANGED <<asked, stops, files, world, value, book, fate>>
           /\ Deliver([pc EXCEPT ![r] = "contain"], [heard EXCEPT ![r] = "none"], record, reply)
           /\ Moves(r, 0)
LeakSteps(r) == Usual(r) \/ Exchanges(r) \/ Leak(r) \/ Contain(r)
LeakRoundSpec == MCInit /\ [][(\E r \in Present : LeakSteps(r)) /\ act' = act]_allVars

-----------------------------------------------------------------------------
(* A failed renewal is counted, and the rank works on.                     *)

WorkOn(r) == /\ pc[r] = "consume" /\ Renews(r) /\ result[r] \in Failed
             /\ attempts' = [attempts EXCEPT ![r] = @ + 1] /\ failures' = [failures EXCEPT ![r] = @ + 1]
             /\ generation' = [generation EXCEPT ![r] = flight[r]] /\ flight' = [flight EXCEPT ![r] = 0]
             /\ UNCHANGED successes
             /\ Go(r, "work")
             /\ UNCHANGED <<stage, heard, sound, mail, files, world, value, fate, met>>
WorkOnSteps(r) == Usual(r) \/ Exchanges(r) \/ Ends(r) \/ WorkOn(r)
WorkOnSpec == MCInit /\ [][(\E r \in Present : WorkOnSteps(r)) /\ act' = act]_allVars
=============================================================================
