------------------------ MODULE LegacySpoolAdmission ------------------------
(* The designs that SpoolAdmission replaces, one flaw each (F364 sections  *)
(* 1 and 2). Every specification here must violate a named property.       *)
EXTENDS MCSpoolAdmission

VARIABLE ingests   \* file -> how often a commit has included it

legacyVars == <<allVars, ingests>>

LegacyInit == MCInit /\ ingests = [f \in Files |-> 0]

Counted == ingests' = ingests

-----------------------------------------------------------------------------
(* No lock: every consumer that asks gets its pass.                        *)

AcquireWithoutLock(c) ==
    /\ pc[c] = "idle"
    /\ pc' = [pc EXCEPT ![c] = "list"]
    /\ Label("TryLock", c)
    /\ UNCHANGED <<files, rows, lockfile, holder, todo, batch, stale, budget, ingests>>

CommitCounted(c) ==
    /\ Commit(c) /\ Label("Commit", c) /\ Free
    /\ ingests' = [f \in Files |-> IF \E i \in GoodIn(batch[c]) : batch[c][i].file = f THEN ingests[f] + 1
                                   ELSE ingests[f]]

\* Another consumer has moved it: the pass ends with ENOENT, after writing the error that it takes for a reason.
MoveMissing(c) ==
    /\ pc[c] = "move" /\ "incoming" \notin where[batch[c][1].file]
    /\ sidecar' = [sidecar EXCEPT ![batch[c][1].file] = "misfits"]
    /\ pc' = [pc EXCEPT ![c] = "release"]
    /\ Forget(c)
    /\ Label("Move", c)
    /\ UNCHANGED <<where, content, rows, lockfile, holder, budget, ingests>>

MovePresent(c) ==
    \E f \in Files : "incoming" \in where[f] /\ Move(c, f, "moved") /\ Free /\ Counted /\ FileLabel("Move", c, f)

OpenPresent(c) ==
    \E f \in Files : "incoming" \in where[f] /\ Open(c, f) /\ Free /\ Counted /\ FileLabel("Open", c, f)

NoLockNext ==
    \/ \E c \in Consumers :
        \/ AcquireWithoutLock(c) \/ CommitCounted(c) \/ MoveMissing(c) \/ MovePresent(c) \/ OpenPresent(c)
        \/ List(c) /\ Free /\ Counted /\ Label("List", c)
        \/ Release(c) /\ Free /\ Counted /\ Label("Release", c)
        \/ \E f \in Files, o \in {"good", "bad"} : Verify(c, f, o) /\ Free /\ Counted /\ FileLabel("Verify", c, f)
        \/ \E f \in Files : WriteSidecar(c, f) /\ Free /\ Counted /\ FileLabel("WriteSidecar", c, f)
    \/ \E f \in Files : \E k \in Payload[f] : Publish(f, k) /\ Free /\ Counted /\ act' = [name |-> "Publish", file |-> f]

NoLockSpec == LegacyInit /\ [][NoLockNext]_legacyVars

\* SPOOL-L1: no published file is ingested twice while nobody crashes.
IngestedOnce == \A f \in Files : ingests[f] <= 1

-----------------------------------------------------------------------------
(* The other three change one step each; the rest of the pass is today's.  *)

OtherSteps(c) ==
    \/ Acquire(c) /\ Label("TryLock", c)
    \/ List(c)    /\ Label("List", c)
    \/ Release(c) /\ Label("Release", c)
    \/ \E f \in Files : Open(c, f) /\ FileLabel("Open", c, f)
    \/ \E f \in Files : WriteSidecar(c, f) /\ FileLabel("WriteSidecar", c, f)
    \/ \E f \in Files, o \in {"moved", "replaced"} : Move(c, f, o) /\ FileLabel("Move", c, f)

Producers ==
    \E f \in Files : \E k \in Payload[f] :
        \/ Publish(f, k) /\ Free   /\ act' = [name |-> "Publish", file |-> f]
        \/ Replace(f, k) /\ Costly /\ act' = [name |-> "Replace", file |-> f]

\* No identity check: what a torn read saw is taken for what the file says.
VerifyByContent(c) ==
    LET n == Len(batch[c])
    IN /\ pc[c] = "verify" /\ FileLabel("Verify", c, batch[c][n].file)
       /\ batch' = IF batch[c][n].file \in stale[c] THEN [batch EXCEPT ![c][n].content = Torn] ELSE batch
       /\ pc' = [pc EXCEPT ![c] = IF batch'[c][n].content = Torn THEN "commit" ELSE AfterRead(batch'[c], todo[c])]
       /\ UNCHANGED <<files, rows, lockfile, holder, todo, stale>>
CommitTorn(c) ==
    /\ pc[c] = "commit" /\ Label("Commit", c)
    /\ rows' = [k \in DOMAIN rows |->
                    IF \E i \in 1..Len(batch[c]) : batch[c][i].content = k /\ k \notin Bad THEN 1 ELSE rows[k]]
    /\ pc' = [pc EXCEPT ![c] = Settle(batch[c], todo[c])]
    /\ UNCHANGED <<files, lockfile, holder, todo, batch, stale>>
NoIdentityNext == Counted /\ (Producers \/ (Free /\ \E c \in Consumers : OtherSteps(c) \/ VerifyByContent(c) \/ CommitTorn(c)))
NoIdentitySpec == LegacyInit /\ [][NoIdentityNext]_legacyVars

VerifyThen(c, early, late) ==
    \E f \in Files, o \in {"good", "bad", "unstable"} :
        /\ pc[c] = "verify" /\ f = batch[c][Len(batch[c])].file
        /\ batch' = batch /\ o = IF batch[c][Len(batch[c])].content \in Good THEN "good" ELSE "bad"
        /\ pc' = [pc EXCEPT ![c] = IF AfterRead(batch[c], todo[c]) = early THEN late ELSE AfterRead(batch[c], todo[c])]
        /\ FileLabel("Verify", c, f)
        /\ UNCHANGED <<files, rows, lockfile, holder, todo, stale>>

\* Move before commit.
MoveFirstNext == Counted /\ (Producers \/ (Free /\ \E c \in Consumers :
    OtherSteps(c) \/ VerifyThen(c, "commit", "move") \/ (Commit(c) /\ Label("Commit", c))))
MoveFirstSpec == LegacyInit /\ [][MoveFirstNext]_legacyVars

\* Sidecar after move: there is an instant, or a crash, in which nothing says why.
SidecarLastNext == Counted /\ (Producers \/ (Free /\ \E c \in Consumers :
    OtherSteps(c) \/ VerifyThen(c, "sidecar", "move") \/ (Commit(c) /\ Label("Commit", c))))
SidecarLastSpec == LegacyInit /\ [][SidecarLastNext]_legacyVars

-----------------------------------------------------------------------------
(* A scan that finds the lock busy is not silent: it takes the file that   *)
(* it sees for one that it could not read, and says so.                    *)

BusyComplains(c) ==
    /\ pc[c] = "idle" /\ holder # Nobody
    /\ \E f \in Files : "incoming" \in where[f] /\ sidecar' = [sidecar EXCEPT ![f] = "misfits"]
    /\ act' = [name |-> "TryLock", consumer |-> c, outcome |-> "Busy"]
    /\ UNCHANGED <<where, content, rows, lockfile, holder, pc, todo, batch, stale>>
AcquireTold(c) == Acquire(c) /\ act' = [name |-> "TryLock", consumer |-> c, outcome |-> "Acquire"]
BusyComplainsNext == Counted /\ (Producers \/ (Free /\ \E c \in Consumers : AcquireTold(c) \/ BusyComplains(c)))
BusyComplainsSpec == LegacyInit /\ [][BusyComplainsNext]_legacyVars
=============================================================================
