/** Where a program on a person's own computer asks to be let in: `gatehouse auth login` leads here. */
import { useState } from 'preact/hooks'
import { address } from '../../address.ts'
import { api, type ProgramPreview } from '../../api/routes.ts'
import { useLoaded } from '../../parts/loaded.tsx'
import { SecretLine } from '../../parts/secret.tsx'
import { userText } from '../../parts/user-text.tsx'
import { caller } from '../../session.ts'
import { DecisionButtons, DecisionPage } from './decision-page.tsx'
import { followRedirect } from './follow-redirect.ts'

export function AuthorizeProgram() {
  const asked = Object.fromEntries(address.value.query)
  const found = useLoaded(address.value.query.toString(), (signal) =>
    api('POST /v1/auth/programs/preview', { body: asked, signal }),
  )
  return (
    <DecisionPage title="Authorize a program" question={found}>
      {(preview) => <Question preview={preview} asked={asked} lookAgain={found.reload} />}
    </DecisionPage>
  )
}

interface QuestionProps {
  preview: ProgramPreview
  asked: Record<string, string>
  lookAgain(): void
}

function Question({ preview, asked, lookAgain }: QuestionProps) {
  const [given, setGiven] = useState<{ code: string | null } | null>(null)
  if (given !== null) return <Given code={given.code} program={preview.program} />
  const { program, redirect_host, token_name } = preview
  return (
    <>
      <h1>Authorize this program?</h1>
      <p>
        A program that calls itself <strong class="wrap">{userText(program)}</strong> asks for access.{' '}
        {token_name === null ? (
          <>
            It will act as <strong class="wrap">{caller.value?.user?.email}</strong> and can do all that you can do,
            until you end its session.
          </>
        ) : (
          <>
            It will get an API token named <strong class="wrap">{userText(token_name)}</strong>, which you can revoke.
          </>
        )}
      </p>
      <p>
        {redirect_host === null ? (
          'You will get a code to enter in the program. Continue only if you started this yourself.'
        ) : (
          <>
            You will be sent on to <strong class="wrap">{redirect_host}</strong>, on this computer.
          </>
        )}
      </p>
      <DecisionButtons
        question={JSON.stringify(preview)}
        decide={(approve, account) =>
          api('POST /v1/auth/programs/decision', { body: { ...asked, approve, user_id: account } })
        }
        done={({ redirect_to, code }) => {
          if (redirect_to === null) setGiven({ code })
          else followRedirect(redirect_to)
        }}
        lookAgain={lookAgain}
      />
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
      <h1>Enter this code</h1>
      <p>Give this code to {program} within a minute, and to nobody else. Then you can close this page.</p>
      <SecretLine secret={code} what="Code" />
    </>
  )
