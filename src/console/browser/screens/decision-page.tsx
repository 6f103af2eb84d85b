/** A page on which a person lets somebody else in, or does not: one question, two answers, who decides. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Refusal } from '../api/request.ts'
import { useAction } from '../parts/dialog.tsx'
import { Alone, Brand } from '../parts/frame.tsx'
import { Fault, type Loaded, Show } from '../parts/loaded.tsx'
import { caller } from '../session.ts'
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
    <Alone>
      <Brand />
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
      {leaving.refusal !== null && <Fault refusal={leaving.refusal} />}
    </Alone>
  )
}

interface AnswersProps<Answer> {
  decide(approve: boolean): Promise<Answer>
  done(answer: Answer): void
  refused?(refusal: Refusal): void
}

/** Neither answer is easier to reach than the other. */
export function Answers<Answer>({ decide, done, refused }: AnswersProps<Answer>) {
  const approval = useAction(() => decide(true), done)
  const denial = useAction(() => decide(false), done)
  const refusal = approval.refusal ?? denial.refusal
  useEffect(() => {
    if (refusal !== null) refused?.(refusal)
  }, [refusal])
  const busy = approval.busy || denial.busy
  return (
    <>
      {refusal !== null && <Fault refusal={refusal} />}
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

/** Follows a redirect that the API built. Another scheme than those of pages is never followed. */
export function leaveFor(redirectTo: string): void {
  if (!/^https?:\/\//.test(redirectTo)) throw new Error('The redirect leads to no page')
  location.assign(redirectTo)
}
