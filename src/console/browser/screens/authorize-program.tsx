/** Where a program on a person's own computer asks to be let in: `gatehouse auth login` leads here. */
import { useEffect, useState } from 'preact/hooks'
import { address } from '../address.ts'
import { api, type ProgramPreview } from '../api/routes.ts'
import { useAction } from '../parts/dialog.tsx'
import { Alone, Brand } from '../parts/frame.tsx'
import { Show, useLoaded } from '../parts/loaded.tsx'
import { said } from '../parts/said.tsx'
import { SecretLine } from '../parts/secret.tsx'
import { caller } from '../session.ts'
import { leaveFor, SignedInAs } from './signed-in-as.tsx'

export function AuthorizeProgram() {
  const asked = Object.fromEntries(address.value.query)
  const found = useLoaded(address.value.query.toString(), (signal) =>
    api('POST /v1/auth/programs/preview', { body: asked, signal }),
  )
  useEffect(() => {
    document.title = 'Let a program in? · Gatehouse'
  }, [])
  return (
    <Alone>
      <Brand />
      <div class="card stack">
        <Show of={found} rows={5}>
          {(preview) => <Question preview={preview} asked={asked} />}
        </Show>
      </div>
      <SignedInAs />
    </Alone>
  )
}

function Question({ preview, asked }: { preview: ProgramPreview; asked: Record<string, string> }) {
  const [given, setGiven] = useState<{ code: string | null } | null>(null)
  const decide = (approve: boolean) => api('POST /v1/auth/programs/decision', { body: { ...asked, approve } })
  const done = ({ redirect_to, code }: { redirect_to: string | null; code: string | null }) => {
    if (redirect_to === null) setGiven({ code })
    else leaveFor(redirect_to)
  }
  const approval = useAction(() => decide(true), done)
  const denial = useAction(() => decide(false), done)
  const refusal = approval.refusal ?? denial.refusal
  if (given !== null) return <Given code={given.code} program={preview.program} />
  const { program, redirect_host, token_name } = preview
  return (
    <>
      <h1>Let this program in?</h1>
      <p>
        A program that calls itself <strong>{said(program)}</strong> asks for access.{' '}
        {token_name === null ? (
          <>
            It will act as <strong>{caller.value?.user?.email}</strong> and can do all that you can do, until you end
            its session.
          </>
        ) : (
          <>
            It will get an API token named <strong>{said(token_name)}</strong>, which you can revoke.
          </>
        )}
      </p>
      <p>
        {redirect_host === null ? (
          'You will be shown a code to type into it. Go on only if you started this yourself.'
        ) : (
          <>
            You will be sent on to <strong>{redirect_host}</strong>, on this computer.
          </>
        )}
      </p>
      {refusal !== null && <p class="note danger">{refusal.message}</p>}
      <div class="equal">
        <button type="button" disabled={denial.busy} onClick={denial.run}>
          Deny
        </button>
        <button type="button" disabled={approval.busy} onClick={approval.run}>
          Approve
        </button>
      </div>
    </>
  )
}

const Given = ({ code, program }: { code: string | null; program: string }) =>
  code === null ? (
    <>
      <h1>Denied</h1>
      <p>{program} gets nothing. You can close this page.</p>
    </>
  ) : (
    <>
      <h1>Type this code</h1>
      <p>Give this code to {program} within a minute, and to nobody else. Then you can close this page.</p>
      <SecretLine secret={code} what="Code" />
    </>
  )
