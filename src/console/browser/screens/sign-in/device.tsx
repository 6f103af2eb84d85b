/**
 * Where a person lets in a device that shows a code (RFC 8628): `claude`, or another tool without a browser of its own.
 * An address that brings the code shows the question; only the person answers it, after a look at the device.
 */
import { useState } from 'preact/hooks'
import { address, href, navigate } from '../../address.ts'
import { api, type DeviceQuestion } from '../../api/routes.ts'
import { TextField } from '../../parts/forms/field.tsx'
import { type Loaded, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { ApplicationName, ScopeList } from './consent.tsx'
import { DecisionButtons, DecisionPage } from './decision-page.tsx'

export function Device() {
  const code = address.value.query.get('user_code') ?? ''
  const found = useLoaded<DeviceQuestion | null>(`device ${code}`, async (signal) =>
    code === '' ? null : await api('POST /v1/oauth/device/preview', { body: { user_code: code }, signal }),
  )
  const isWrong = found.refusal !== null && [404, 422, 429].includes(found.refusal.status)
  const asks = code === '' || isWrong
  return (
    <DecisionPage title="Authorize a device" question={asks ? { ...found, value: null, refusal: null } : found}>
      {(question) => (question === null ? <EnterCode given={code} found={found} /> : <Question question={question} />)}
    </DecisionPage>
  )
}

function EnterCode({ given, found }: { given: string; found: Loaded<DeviceQuestion | null> }) {
  const [code, setCode] = useState(given)
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault()
        if (code === given) found.reload()
        else navigate(href('/device', { user_code: code }))
      }}
    >
      <h1>Authorize a device</h1>
      <TextField
        label="Code"
        hint="The device shows it, such as WDJB-MJHT"
        value={code}
        set={setCode}
        required
        mono
        focus
        autocomplete="off"
        fault={found.refusal?.message ?? null}
      />
      <button type="submit" class="primary">
        Continue
      </button>
    </form>
  )
}

function Question({ question }: { question: DeviceQuestion }) {
  const [approved, setApproved] = useState<boolean | null>(null)
  if (approved !== null) return <Answered approved={approved} />
  const { client, scopes, user_code, asked_at } = question
  return (
    <>
      <h1>Authorize this device?</h1>
      <p>
        A device shows the code <strong class="mono">{user_code}</strong>. It asked <Time at={asked_at} /> for an
        application with this name:
      </p>
      <ApplicationName client={client} />
      <ScopeList client={client} scopes={scopes} />
      <p>
        <strong>Approve only if you started this yourself</strong> and the device in front of you shows this code. If
        somebody sent you the code or the link, deny: they would act in your name.
      </p>
      <DecisionButtons
        question={JSON.stringify(question)}
        decide={(approve, account) =>
          api('POST /v1/oauth/device/decision', {
            body: {
              user_code,
              approve,
              scopes: approve ? scopes.map(({ scope }) => scope) : [],
              user_id: account,
              client_name: client.client_name,
            },
          })
        }
        done={(answer) => setApproved(answer.approved)}
        lookAgain={() => location.reload()}
      />
    </>
  )
}

const Answered = ({ approved }: { approved: boolean }) => (
  <>
    <h1>{approved ? 'Approved' : 'Denied'}</h1>
    <p>
      {approved ? 'Go back to the device: it goes on by itself.' : 'The device gets nothing.'} You can close this page.
    </p>
  </>
)
