/** A page that is one form: how somebody comes in. */
import type { ComponentChildren } from 'preact'
import { useEffect } from 'preact/hooks'
import type { Caller } from '../../api/caller.ts'
import { api } from '../../api/routes.ts'
import { useAction } from '../../parts/frame/dialog.tsx'
import { Brand, StandalonePage } from '../../parts/frame/frame.tsx'
import { ErrorNote } from '../../parts/loaded.tsx'
import { signedIn } from '../../session.ts'

interface Props {
  title: string
  /** The button's words, at rest and at work. */
  action: readonly [atRest: string, atWork: string]
  /** What signs the person in. */
  send(): Promise<unknown>
  done?(): void
  /** The fields; `fault` gives what is wrong with one of them. */
  children(fault: (param: string) => string | null): ComponentChildren
  below?: ComponentChildren
}

export function StandaloneForm({ title, action: [atRest, atWork], send, done, children, below }: Props) {
  useEffect(() => {
    document.title = `${title} · Gatehouse`
  }, [title])
  const { run, busy, refusal } = useAction(
    async () => {
      await send()
      return await api('GET /v1/auth/session', {})
    },
    (found: Caller) => {
      signedIn(found)
      done?.()
    },
  )
  return (
    <StandalonePage>
      <Brand />
      <form
        class="card form"
        onSubmit={(event) => {
          event.preventDefault()
          run()
        }}
      >
        {children((param) => (refusal?.param === param ? refusal.message : null))}
        {refusal !== null && <ErrorNote refusal={refusal} />}
        <button type="submit" class="primary" disabled={busy}>
          {busy ? atWork : atRest}
        </button>
      </form>
      {below}
    </StandalonePage>
  )
}
