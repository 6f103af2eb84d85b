/** A page on which a person lets somebody else in, or does not: one question, two answers, who decides. */
import type { ComponentChildren } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { api } from '../../api/routes.ts'
import { useAction } from '../../parts/frame/dialog.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { ErrorNote, type Loaded, Show } from '../../parts/loaded.tsx'
import { acceptCaller, accountChanged, caller } from '../../session.ts'
import { signOut } from './sign-out.ts'

interface PageProps<Asked> {
  title: string
  question: Loaded<Asked>
  children(asked: Asked): ComponentChildren
}

export function DecisionPage<Asked>({ title, question, children }: PageProps<Asked>) {
  useEffect(() => {
    document.title = `${title} · Gatehouse`
  }, [title])
  const leaving = useAction(signOut, () => undefined)
  return (
    <StandalonePage>
      <Brand />
      {accountChanged.value && (
        <p class="note warn wrap" role="alert">
          The account changed: you are now signed in as {caller.value?.user?.email}.
        </p>
      )}
      <div class="card stack">
        <Show of={question} rows={6}>
          {children}
        </Show>
      </div>
      <p class="row between small">
        <span class="quiet wrap">Signed in as {caller.value?.user?.email}</span>
        <button type="button" class="plain" disabled={leaving.busy} onClick={leaving.run}>
          Not you?
        </button>
      </p>
      {leaving.refusal !== null && <ErrorNote refusal={leaving.refusal} />}
    </StandalonePage>
  )
}

interface AnswersProps<Answer> {
  /** What is asked, and of whom: whenever it changes, nothing can be answered for a moment. */
  question: string
  /** Sends the answer of the account that the page shows. */
  decide(approve: boolean, account: string | undefined): Promise<Answer>
  done(answer: Answer): void
  /** Asks again what is to be shown, where the answer came to a question that has changed. */
  lookAgain(): void
}

/** Long enough that the second click of two never answers what came up between them. */
const heldMilliseconds = 1000

/** Neither answer is easier to reach than the other. */
export function DecisionButtons<Answer>({ question, decide, done, lookAgain }: AnswersProps<Answer>) {
  const account = caller.value?.user?.id
  const approval = useAction(() => decide(true, account), done)
  const denial = useAction(() => decide(false, account), done)
  const refusal = approval.refusal ?? denial.refusal
  useEffect(() => {
    if (refusal?.code !== 'consent_outdated') return
    // Where that fails, the account that is shown stays, and the next answer is refused as this one was.
    api('GET /v1/auth/session', {}).then(acceptCaller, () => undefined)
    lookAgain()
  }, [refusal])
  const held = useHeld(`${account} ${question}`)
  const busy = approval.busy || denial.busy || held
  return (
    <>
      {refusal !== null && <ErrorNote refusal={refusal} />}
      <div class="equal">
        <button type="button" disabled={busy} onClick={denial.run}>
          Deny
        </button>
        <button type="button" disabled={busy} onClick={approval.run}>
          Approve
        </button>
      </div>
    </>
  )
}

/** Whether what is shown has changed a moment ago. */
function useHeld(shown: string): boolean {
  const [seen, setSeen] = useState<string | null>(null)
  useEffect(() => {
    const timer = setTimeout(() => setSeen(shown), heldMilliseconds)
    return () => clearTimeout(timer)
  }, [shown])
  return seen !== shown
}
